package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"stint/worker/regular"
)

// commandsIn finds the members of a settings file, JSON or TOML, that say what is started, and
// textsIn the texts in one.
var (
	commandsIn = regexp.MustCompile(`(?s)["']?\b(?:command|args|cmd|cmds|notify|[A-Za-z]*Helper|awsAuthRefresh|awsCredentialExport)["']?\s*[:=]\s*(\[[^\]]*\]|"(?:[^"\\]|\\.)*"|'[^']*')`)
	textsIn    = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|'[^']*'`)
)

// mostSettings bounds, in bytes, the settings file that is looked through.
const mostSettings = 4 << 20

// named are the files of the work folder's repository that a source has started: what the agent
// writes into them would be executed as its user. Files that those load in turn aren't found.
func (s Source) named(dir, top string) (out []string) {
	if !s.Runs {
		return nil
	}
	_ = filepath.WalkDir(s.Path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".json", ".jsonc", ".toml", ".yaml", ".yml"}, filepath.Ext(path)) {
			return nil //nolint:nilerr // what can't be read was said when the source was
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > mostSettings {
			return nil //nolint:nilerr // likewise
		}
		text, err := regular.Read(path)
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		for _, member := range commandsIn.FindAllSubmatch(text, -1) {
			for _, quoted := range textsIn.FindAllString(string(member[1]), -1) {
				for _, word := range commandWords(quoted) {
					for _, file := range filesNamed(word, dir, filepath.Dir(path)) {
						if within(file, top) && !within(file, s.Path) && !slices.Contains(out, file) {
							out = append(out, file)
						}
					}
				}
			}
		}
		return nil
	})
	return out
}

// commandWords are the words of a quoted text that may be names of files.
func commandWords(quoted string) []string {
	var text string
	if json.Unmarshal([]byte(quoted), &text) != nil {
		text = strings.Trim(quoted, `"'`)
	}
	for _, here := range []string{"$CLAUDE_PROJECT_DIR/", "${CLAUDE_PROJECT_DIR}/", "${workspaceFolder}/", "${PWD}/", "$PWD/"} {
		text = strings.ReplaceAll(text, here, "")
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;&|()<>=,", r) })
	return append(words, text)
}

// filesNamed are the files that a word names in one of two folders. A folder is none, although an
// interpreter may start something in it: more often it is what a tool is about.
func filesNamed(word string, folders ...string) (out []string) {
	for _, folder := range folders {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			out = append(out, path)
		}
	}
	return out
}

// addNamed appends the files that sources have started, each as a source of its own: the owner
// accepts it as it is.
func addNamed(all []Source, dir, top string, failed error) ([]Source, error) {
	known := map[string]bool{}
	for _, s := range all {
		known[s.Path] = true
	}
	for _, s := range slices.Clone(all) {
		for _, file := range s.named(dir, top) {
			if !known[file] {
				known[file] = true
				all, failed = addSource(all, Source{Use: s.Use, Path: file, Name: relative(dir, file), Runs: true}, filepath.Dir(file), failed)
			}
		}
	}
	return all, failed
}
