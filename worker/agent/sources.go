package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"stint/api"
	"stint/worker/regular"
)

// Source is something that a switch of [Uses] lets a program load.
type Source struct {
	Use    string // the switch
	Path   string // a file or a folder
	Name   string // relative to the work folder where it lies there or above, else with ~
	Home   bool   // it is the user's own, not the work folder's
	Runs   bool   // something of it is executed: tool servers, hooks, commands of skills
	Foul   string // why others could have written it, in words; "" = they can't
	Digest string // of all of its content and names
}

// Asks reports whether the worker's owner has to have accepted exactly this: others could have
// written it, or the agent itself could, and it is executed. contract 15.5
func (s Source) Asks() bool { return s.Foul != "" || s.Runs && !s.Home }

// The bounds on what is read to tell what a source holds.
const (
	sourceFiles = 5000
	sourceBytes = 64 << 20
)

// sourcesOf are the places of each switch: below the work folder and the folders above it up to its
// repository's, and below the user's home. What ends with a slash is a folder.
type sourcesOf map[string]struct{ work, home []string }

var claudeSources = sourcesOf{
	UseInstructions: {work: []string{"CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/"}},
	UseSkills:       {[]string{".claude/skills/", ".claude/commands/"}, []string{"skills/", "commands/"}},
	UseToolServers:  {work: []string{".mcp.json"}},
	UseProvider:     {home: []string{"settings.json"}},
	UseSettings: {
		[]string{".claude/settings.json", ".claude/settings.local.json", ".claude/hooks/", ".claude/agents/", ".claude/output-styles/"},
		[]string{"settings.json", "CLAUDE.md", "rules/", "hooks/", "agents/", "output-styles/"},
	},
}

var codexSources = sourcesOf{
	UseInstructions: {work: []string{"AGENTS.override.md", "AGENTS.md"}},
	UseSkills:       {[]string{".agents/skills/", ".codex/skills/"}, []string{"skills/"}},
	UseToolServers:  {[]string{".codex/config.toml"}, []string{"config.toml"}},
	UseProvider:     {home: []string{"config.toml"}},
	UseSettings:     {[]string{".codex/"}, []string{"config.toml", "AGENTS.md", "AGENTS.override.md", "hooks.json", "rules/", "prompts/"}},
}

var opencodeSources = sourcesOf{
	UseInstructions: {work: []string{"AGENTS.md", "CLAUDE.md"}},
	UseSkills:       {work: []string{".claude/skills/", ".agents/skills/"}},
	UseToolServers:  {[]string{"opencode.json", "opencode.jsonc"}, []string{"opencode.json", "opencode.jsonc", "config.json"}},
	UseSettings: {
		[]string{"opencode.json", "opencode.jsonc", ".opencode/"},
		[]string{"opencode.json", "opencode.jsonc", "config.json", "AGENTS.md", "plugin/", "plugins/"},
	},
}

// otherSources are those of Gemini CLI and its kin, which take all or nothing.
var otherSources = sourcesOf{
	UseInstructions: {work: []string{"GEMINI.md", "QWEN.md", "AGENTS.md"}},
	UseSettings:     {work: []string{".gemini/", ".qwen/", ".goosehints", ".kimi/", ".cursor/", ".github/copilot-instructions.md"}},
}

// sourcesFor are the places of a type's program, and its own folder in the user's home.
func sourcesFor(kind api.AgentType, argv, env []string) (sourcesOf, string) {
	switch kind {
	case api.TypeClaudeCode:
		return claudeSources, claudeHome(env)
	case api.TypeCodex:
		return codexSources, codexHome(env)
	case api.TypeACP:
		if program, _ := api.ACPProgramOf(argv); program.Name == "opencode" {
			return opencodeSources, opencodeHome(env)
		}
		return otherSources, ""
	}
	return nil, ""
}

// Sources are the files and folders that the switches let a type's program load in a work folder,
// those that are there, and the files of the folder that those have started. An error says which of them is too large to be looked at, or can't be read.
func (u Uses) Sources(kind api.AgentType, argv []string, dir string, env []string) (out []Source, err error) {
	places, home := sourcesFor(kind, argv, env)
	top := repositoryOf(dir)
	for _, n := range UseNames {
		if !u.Has(n.Name) {
			continue
		}
		runs := n.Name == UseToolServers || n.Name == UseSettings || n.Name == UseSkills
		for at := dir; at != ""; at = above(at, top) {
			for _, name := range places[n.Name].work {
				out, err = addSource(out, Source{Use: n.Name, Path: filepath.Join(at, name), Name: relative(dir, filepath.Join(at, name)), Runs: runs}, at, err)
			}
		}
		for _, name := range places[n.Name].home {
			if home != "" {
				out, err = addSource(out, Source{Use: n.Name, Path: filepath.Join(home, name), Name: filepath.Join("~", filepath.Base(home), name), Home: true, Runs: runs}, home, err)
			}
		}
		if own := variable(env, "HOME"); own != "" {
			for _, name := range ownSources(kind, n.Name) {
				out, err = addSource(out, Source{Use: n.Name, Path: filepath.Join(own, name), Name: "~/" + name, Home: true, Runs: runs}, own, err)
			}
		}
	}
	return addNamed(out, dir, top, err)
}

// ownSources lie in the user's home, outside the program's own folder.
func ownSources(kind api.AgentType, use string) []string {
	switch {
	case use == UseToolServers && kind == api.TypeClaudeCode:
		return []string{".claude.json"}
	case use == UseSkills && kind == api.TypeCodex:
		return []string{".agents/skills"}
	case use == UseSkills && kind == api.TypeACP:
		return []string{".agents/skills", ".claude/skills"}
	}
	return nil
}

// relative is a path as seen from a folder, the path itself where there is no way.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return rel
	}
	return path
}

// repositoryOf is the folder of the repository that a folder lies in, the folder itself where it
// lies in none.
func repositoryOf(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// above is the folder above another, "" above top.
func above(at, top string) string {
	if at == top || at == filepath.Dir(at) {
		return ""
	}
	return filepath.Dir(at)
}

// addSource appends a source that is there, with what it holds and who can write it. base is the folder
// that it is looked for in.
func addSource(all []Source, s Source, base string, failed error) ([]Source, error) {
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return all, failed
	}
	if err != nil {
		return all, errors.Join(failed, fmt.Errorf("%s can't be read: %w", s.Name, bare(err)))
	}
	look := &lookOver{sum: sha256.New(), seen: map[string]bool{}}
	for at := filepath.Dir(s.Path); within(at, base); at = filepath.Dir(at) {
		look.judge(at)
		if at == base {
			break
		}
	}
	if err := look.take(s.Path, "", info); err != nil {
		return all, errors.Join(failed, fmt.Errorf("%s: %w", s.Name, err))
	}
	if look.files == 0 && info.IsDir() {
		return all, failed
	}
	s.Foul, s.Digest = look.foul, "sha256:"+hex.EncodeToString(look.sum.Sum(nil))
	return append(all, s), failed
}

// bare is an error without the path that it names.
func bare(err error) error {
	if wrapped := (*fs.PathError)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// lookOver reads a file or folder to the end, links followed.
type lookOver struct {
	sum   hash.Hash
	seen  map[string]bool // folders, links resolved
	files int
	bytes int64
	foul  string
}

// judge notes who else than this user and root can write what lies at a path.
func (l *lookOver) judge(path string) {
	info, err := os.Stat(path)
	if err != nil || l.foul != "" {
		return
	}
	name := filepath.Base(path)
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Getuid() && s.Uid != 0 {
		l.foul = name + " belongs to another user"
	} else if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		l.foul = fmt.Sprintf("%s can be written by others (mode %#o)", name, info.Mode().Perm())
	}
}

func (l *lookOver) take(path, name string, info fs.FileInfo) error {
	l.judge(path)
	if info.IsDir() {
		real := resolve(path)
		if l.seen[real] { // under another name
			fmt.Fprintf(l.sum, "%d %s\x00again\x00", len(name), name)
			return nil
		}
		l.seen[real] = true
		entries, err := os.ReadDir(path)
		if err != nil {
			return bare(err)
		}
		for _, e := range entries {
			inner := filepath.Join(path, e.Name())
			info, err := os.Stat(inner)
			if errors.Is(err, fs.ErrNotExist) {
				continue // a link to nothing
			}
			if err != nil {
				return bare(err)
			}
			if err := l.take(inner, filepath.Join(name, e.Name()), info); err != nil {
				return err
			}
		}
		return nil
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	l.files++
	if l.bytes += info.Size(); l.files > sourceFiles || l.bytes > sourceBytes {
		return fmt.Errorf("it holds more than %d files or %d MiB", sourceFiles, sourceBytes>>20)
	}
	f, err := regular.Open(path)
	if err != nil {
		return bare(err)
	}
	defer f.Close()
	fmt.Fprintf(l.sum, "%d %s\x00%v\x00", len(name), name, info.Mode()&0o111 != 0)
	content := sha256.New()
	if _, err := io.Copy(content, io.LimitReader(f, sourceBytes)); err != nil {
		return bare(err)
	}
	l.sum.Write(content.Sum(nil))
	return nil
}

// firstOf is the first of several files of a folder that can be read, and its text; "" for none.
func firstOf(dir string, names ...string) (path, text string) {
	for _, name := range names {
		if b, err := regular.Read(filepath.Join(dir, name)); err == nil && strings.TrimSpace(string(b)) != "" {
			return filepath.Join(dir, name), string(b)
		}
	}
	return "", ""
}

// folderInstructions are the instructions of a work folder and of those above it up to its
// repository's, the outermost first, for a program that isn't let read them itself. At most limit
// bytes of each are taken, as Codex does.
func folderInstructions(dir string, names ...string) string {
	const limit = 32 << 10
	var all []string
	top := repositoryOf(dir)
	for at := dir; at != ""; at = above(at, top) {
		if path, text := firstOf(at, names...); path != "" {
			all = append(all, fmt.Sprintf("# Instructions of the work folder, from %s\n\n%s", relative(dir, path), clip(text, limit)))
		}
	}
	slices.Reverse(all)
	return strings.Join(all, "\n\n")
}
