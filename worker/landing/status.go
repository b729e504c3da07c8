package landing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"stint/worker/git"
)

// entry is a file that differs from the commit checked out, or that git doesn't know.
type entry struct {
	path     string // from the tree's top, as bytes
	unknown  bool   // git doesn't know it
	conflict bool   // an operation left it unresolved
	module   bool   // a submodule, whose commit differs
	inside   bool   // a repository that lies in the tree and is none of its submodules
	file     bool   // the file itself differs from the index
	deleted  bool   // and is gone
}

// status goes through all such files, but for what a sandbox left. Submodules are told from their commits alone: to look into
// one would be to obey its settings. When each returns git.Enough, it ends without an error.
func (t *Tree) status(ctx context.Context, each func(entry) error) error {
	_, err := t.tree.Do(ctx, git.Call{
		Args: []string{"status", "--porcelain=v2", "-z", "--no-ahead-behind", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames"},
		Set:  quiet,
		Read: func(r io.Reader) error {
			in := bufio.NewReaderSize(r, 64<<10)
			for {
				field, err := in.ReadString(0)
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				e, err := parseEntry(strings.TrimSuffix(field, "\x00"))
				if err == nil && !(e.unknown && git.Placeholder(filepath.Join(t.top(), filepath.FromSlash(e.path)))) {
					err = each(e)
				}
				if err != nil {
					return err
				}
			}
		},
	})
	return err
}

// quiet keeps git from writing beside the index, from complaining about line ends, and from
// looking for differences in enormous files.
var quiet = [][2]string{
	{"core.splitIndex", "false"},
	{"core.untrackedCache", "false"},
	{"core.safecrlf", "false"},
	{"index.sparse", "false"},
	{"core.bigFileThreshold", "16m"},
	{"core.compression", "0"},
	{"core.looseCompression", "0"},
	{"core.quotePath", "true"},
	{"i18n.logOutputEncoding", "UTF-8"},
	{"i18n.commitEncoding", "UTF-8"},
}

// parseEntry reads one line of git status --porcelain=v2 -z.
func parseEntry(line string) (entry, error) {
	kind, rest, _ := strings.Cut(line, " ")
	fields := map[string]int{"1": 7, "u": 9}[kind]
	switch {
	case kind == "?":
		path, inside := strings.CutSuffix(rest, "/")
		return entry{path: path, unknown: true, inside: inside, file: true}, nil
	case fields == 0:
		return entry{}, fmt.Errorf("git status: unknown line %q", line)
	}
	parts := strings.SplitN(rest, " ", fields+1)
	if len(parts) != fields+1 || len(parts[0]) != 2 || parts[1] == "" {
		return entry{}, fmt.Errorf("git status: unknown line %q", line)
	}
	return entry{
		path: parts[fields], conflict: kind == "u", module: parts[1][0] == 'S',
		file: kind == "u" || parts[0][1] != '.', deleted: parts[0][1] == 'D',
	}, nil
}
