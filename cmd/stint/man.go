package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"stint/api"
)

func (c *cli) manCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "man [COMMAND…]", Short: "Print the manual page of a command, or write them all",
		Long: "Prints the manual page of a command, or with --dir writes those of all commands\n" +
			"into a directory, where man finds them.",
		Example: "stint man task create | man -l -\n" +
			"stint man --dir ~/.local/share/man/man1",
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same binary gives the same page
			head := &doc.GenManHeader{Section: "1", Source: "stint " + builtFrom().Version, Manual: "Stint"}
			if dir != "" {
				if len(args) > 0 {
					return usage("cannot write the manual pages", "--dir writes those of all commands: leave out "+args[0], "stint man --help")
				}
				return c.writeManual(root, head, dir)
			}
			of, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usage(fmt.Sprintf("there is no command %q", "stint "+joined(args)), "", "stint --help")
			}
			var page bytes.Buffer
			if err := doc.GenMan(of, head, &page); err != nil {
				return err
			}
			_, err = c.out.Write(page.Bytes())
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write all pages into this `DIR`")
	return cmd
}

func (c *cli) writeManual(root *cobra.Command, head *doc.GenManHeader, dir string) error {
	what := "cannot write the manual pages to " + dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	if err := doc.GenManTree(root, head, dir); err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	if filepath.Base(dir) == "man1" {
		c.hint("Read them with: man -M %s stint", filepath.Dir(dir))
	} else {
		c.hint("Read one with: man -l %s", filepath.Join(dir, "stint.1"))
	}
	return nil
}
