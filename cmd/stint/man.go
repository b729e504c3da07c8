package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

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
			page, err := manualOf(of, *head)
			if err == nil {
				_, err = c.out.Write(page)
			}
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
	if err := writePages(root, *head, dir); err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	if filepath.Base(dir) == "man1" {
		c.hint("Read them with: man -M %s stint", filepath.Dir(dir))
	} else {
		c.hint("Read one with: man -l %s", filepath.Join(dir, "stint.1"))
	}
	return nil
}

// writePages writes the pages of a command and of all below it into a directory.
func writePages(of *cobra.Command, head doc.GenManHeader, dir string) error {
	for _, sub := range of.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := writePages(sub, head, dir); err != nil {
			return err
		}
	}
	page, err := manualOf(of, head)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(of.CommandPath(), " ", "-") + "." + head.Section
	return os.WriteFile(filepath.Join(dir, name), page, 0o644)
}

const (
	takesValue = "\ue000" // stand in for what cobra writes between a flag and its value, which
	takesNone  = "\ue001" // a manual page shows as the help does
)

// manualOf is the manual page of a command.
func manualOf(of *cobra.Command, head doc.GenManHeader) ([]byte, error) {
	of.InitDefaultHelpCmd()
	of.InitDefaultHelpFlag()
	for _, flags := range []*pflag.FlagSet{of.NonInheritedFlags(), of.InheritedFlags()} {
		flags.VisitAll(asInHelp)
	}
	var page bytes.Buffer
	if err := doc.GenMan(of, &head, &page); err != nil {
		return nil, err
	}
	text := strings.NewReplacer("="+takesValue, " ", "="+takesNone, "").Replace(page.String())
	return []byte(text), nil
}

// asInHelp makes cobra print a flag in a manual page with its placeholder and what it is without
// the flag. The flag is of no other use afterwards.
func asInHelp(f *pflag.Flag) {
	if _, done := f.Value.(shown); done {
		return
	}
	placeholder, use := pflag.UnquoteUsage(f)
	if d := f.DefValue; !slices.Contains([]string{"", "0", "0s", "[]", "false"}, d) {
		use += " (default " + d + ")"
	}
	f.Usage, f.DefValue, f.NoOptDefVal, f.Value = use, takesValue+placeholder, "", shown{f.Value}
	if placeholder == "" {
		f.DefValue = takesNone
	}
}

// shown is the value of a flag that a manual page shows.
type shown struct{ pflag.Value }

// Type is no type that cobra quotes.
func (shown) Type() string { return "shown" }
