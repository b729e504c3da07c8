package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// setting is one that some file gives, with the scope of that file as git calls it.
type setting struct{ scope, key, value string }

var errTooMany = errors.New("git config: the repository has too many settings")

// settings are all that count for a tree, in the order in which later ones win. Reading them
// executes nothing.
func (p program) settings(ctx context.Context, at tree) ([]setting, error) {
	for _, path := range []string{
		filepath.Join(at.common, "config"), filepath.Join(at.dir, "config.worktree"), filepath.Join(at.common, "HEAD"), filepath.Join(at.dir, "HEAD"),
	} {
		if err := plain(path); err != nil {
			return nil, err
		}
	}
	list, err := p.read(ctx, at, "config", "--includes", "--list", "--show-scope", "-z")
	if err != nil {
		return nil, err
	}
	if len(list) == mostOutput {
		return nil, errTooMany
	}
	var all []setting
	fields := strings.Split(list, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, given := strings.Cut(fields[i+1], "\n")
		if !given {
			value = "true" // as git takes a key alone
		}
		all = append(all, setting{fields[i], key, value})
	}
	return all, nil
}

// known are the settings of trees of a repository that was opened, each read once: what is in force
// does not have to be newer than that, and reading it takes as long as many a call does.
type known struct {
	mu sync.Mutex
	of map[tree][]setting
}

func (k *known) settings(ctx context.Context, p program, at tree) ([]setting, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if all, ok := k.of[at]; ok {
		return all, nil
	}
	all, err := p.settings(ctx, at)
	if err != nil {
		return nil, err
	}
	if k.of == nil {
		k.of = map[tree][]setting{}
	}
	k.of[at] = all
	return all, nil
}

// last is the value that counts of those of some scopes, "" = none.
func last(all []setting, key string, scopes ...string) (value string) {
	key = spelled(key)
	for _, s := range all {
		if s.key == key && slices.Contains(scopes, s.scope) {
			value = s.value
		}
	}
	return value
}

// spelled is a key as git lists it: in small letters but for its middle.
func spelled(key string) string {
	first, end := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return key
	}
	return strings.ToLower(key[:first]) + key[first:end] + strings.ToLower(key[end:])
}

// obeyed are the settings of a repository that are in force for calls of ours: how its files are
// stored, and how they lie in the tree. None of them names a program or another place, or lets files
// be written where git wouldn't. What else
// the repository says is not known to git then; in particular it knows no filter, hook, driver,
// helper, alias or remote.
var obeyed = strings.Fields(`autocrlf bare bigfilethreshold checkroundtripencoding checkstat createobject eol filemode ignorecase
	logallrefupdates precomposeunicode sharedrepository sparsecheckout sparsecheckoutcone symlinks trustctime untrackedcache`)

// ErrExtension says that a repository is stored in a way that this package doesn't know.
var ErrExtension = errors.New("the git repository is stored in a way that Stint does not know")

// extensions say how a repository is stored: those that are passed on, and those that change
// nothing of what this package reads, or are looked after elsewhere.
var (
	extensions = map[string][]string{"objectformat": {"sha1", "sha256"}, "compatobjectformat": {"sha1", "sha256"}, "refstorage": {"files", "reftable"}}
	unneeded   = []string{"noop", "noop-v1", "partialclone", "preciousobjects", "relativeworktrees", "submodulepathconfig", "worktreeconfig"}
)

// inForce is the file of settings for a view of a repository that has these.
func inForce(all []setting, top string) (string, error) {
	core, stored := map[string]string{}, map[string]string{}
	strict := last(all, "core.repositoryformatversion", "local") != "0" // else git itself passes over what it doesn't know
	for _, s := range all {
		if s.scope != "local" && s.scope != "worktree" {
			continue
		}
		first, name, _ := strings.Cut(s.key, ".")
		switch value := strings.ToLower(s.value); {
		case first == "core" && slices.Contains(obeyed, name):
			core[name] = s.value
		case first != "extensions" || slices.Contains(unneeded, name):
		case slices.Contains(extensions[name], value):
			stored[name] = value
		case strict:
			return "", fmt.Errorf("%w: %s", ErrExtension, top)
		}
	}
	core["repositoryformatversion"] = "0"
	if len(stored) > 0 {
		core["repositoryformatversion"] = "1"
	}
	return section("core", core) + section("extensions", stored), nil
}

var quote = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)

// section writes settings as git reads them.
func section(name string, settings map[string]string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "[%s]\n", name)
	for key, value := range settings {
		fmt.Fprintf(&out, "\t%s = \"%s\"\n", key, quote.Replace(value))
	}
	return out.String()
}
