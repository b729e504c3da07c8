package cmdline_test

import (
	"slices"
	"strings"
	"testing"

	"stint/worker/agent/cmdline"
)

func TestRead_FindsWhatALineMayRun(t *testing.T) {
	for line, want := range map[string][]string{ // the acts' words
		"a b | c; d":                          {"a b", "c", "d"},
		"sudo -u x a b":                       {"sudo -u x a b", "x a b", "a b"},
		"X=1; a $X":                           {"a", "a 1"},
		"X=1; X=2; a \"$X\"":                  {"a ", "a 1", "a 2"},
		"a $HOME/x $(b)":                      {"a ⋯/x …", "b"},
		"a *.go 'b c' \"*\"":                  {"a ∗.go b c *"},
		"sh -c 'a $1' x y":                    {"sh -c a $1 x y", "a y"},
		"a $(echo b c) \"$(printf %s d)\"":    {"a b c d", "echo b c", "printf %s d"},
		"find . -exec a {} +":                 {"find . -exec a {} +", "a ∗"},
		"b() { a \"$@\"; }":                   {"a …"},
		"a <<E\n$(b)\nE":                      {"a", "b"},
		"X=$X; a $X; read X":                  {"a …", "read X"},
		"a {1..3} {x,y}z":                     {"a 1 2 3 xz yz"},
		"a " + strings.Repeat("{a,b}", 30):    {"a …"},
		"a ${X:-b} ${Y@P} ${#Z} $((1+1)) ~/x": {"a … … … … ⋯/x"},
	} {
		read := cmdline.Read(line)
		var got []string
		for _, a := range surely(read) {
			got = append(got, strings.Join(a.Words, " "))
		}
		if !slices.Equal(got, want) || read.Unclear != "" {
			t.Errorf("%q: %q, %q; want %q", line, got, read.Unclear, want)
		}
	}
}

// surely are the acts that aren't loose.
func surely(read cmdline.Line) []cmdline.Act {
	return slices.DeleteFunc(slices.Clone(read.Acts), func(a cmdline.Act) bool { return a.Loose })
}

func TestRead_SaysWhereItCannotTell(t *testing.T) {
	for _, line := range []string{
		"a 'unclosed", "$X a", "$(b) a", "a | sh", "sh < file", "eval \"$X\"", "sh -c \"$X\"", "source /dev/stdin", "a <(b) | bash", "pwsh -c a", "read X; $X", "echo x > y; sh y", "IFS=,; X=a,b; $X", "python3 - < x",
		"alias x=\"$Y\"",
	} {
		if read := cmdline.Read(line); read.Unclear == "" {
			t.Errorf("%q seems clear: %+v", line, read.Acts)
		}
	}
}

func TestRead_NamesFilesThatAreWritten(t *testing.T) {
	read := cmdline.Read("a > x 2>&1 >> ./y &> \"$HOME/z\" 2> /dev/null < in >& w >&2; { b; } > $(c)")
	if want := []string{"x", "./y", "⋯/z", "w", "…"}; !slices.Equal(read.Writes, want) {
		t.Errorf("%q, want %q", read.Writes, want)
	}
}

func TestAct_IsWhatAPatternNames(t *testing.T) {
	for _, c := range []struct {
		pattern, line string
		want          cmdline.Answer
	}{
		{"git push*", "/usr/bin/GIT -C x push", cmdline.Yes},
		{"git push*", "git-push x", cmdline.Yes},
		{"git push*", "git status push", cmdline.No},
		{"git push*", "git $X", cmdline.Maybe},
		{"git push*", "git s$X", cmdline.No},
		{"git push*", "git $(cmd) push", cmdline.Maybe},
		{"git push --force*", "git push origin x --force", cmdline.Yes},
		{"git push --force*", "git push -f", cmdline.Yes},
		{"git push --force*", "git push origin x", cmdline.No},
		{"git push --force*", "git push $X", cmdline.Maybe},
		{"git push -f*", "git push origin --force", cmdline.Yes},
		{"rm -rf /*", "rm -r --force x /home", cmdline.No},
		{"rm -rf /*", "rm -r --force /home", cmdline.Yes},
		{"rm -rf*", "rm -r x", cmdline.No},
		{"rm -rf*", "rm -- -rf", cmdline.No},
		{"rm -rf*", "rm *.o", cmdline.No},
		{"rm -rf*", "rm $X", cmdline.Maybe},
		{"", "anything", cmdline.Yes},
		{"make", "make", cmdline.Yes},
		{"make", "make all", cmdline.No},
	} {
		if got := cmdline.Read(c.line).Acts[0].Is(c.pattern); got != c.want {
			t.Errorf("%q is %q: %v, want %v", c.line, c.pattern, got, c.want)
		}
	}
}

func TestQuote_IsReadAsItWas(t *testing.T) {
	argv := []string{"a", "b c", "$X", "'", "\"", "", "*", "x\ny", "~", "{a,b}"}
	read := cmdline.Read(cmdline.Quote(argv))
	if acts := surely(read); len(acts) != 1 || !slices.Equal(acts[0].Words, argv) || read.Unclear != "" {
		t.Errorf("%+v", read)
	}
}

// Whatever follows or is around it, a command that is written out is found.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"ls; rm x", "sh -c 'sh -c \"sh -c x\"'", "echo $(", "a=(b c); ${a[0]}", "case x in y) rm;; esac", "\xff", "<<E", "{1..9}{a,b}$x", "X=$Y Y=$X; $X", "${x:1:2}${y//a/$x}", "echo a | cat | sh"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cmdline.Write(s)
		cmdline.Unwrap(s)
		for _, line := range []string{"git push; " + s, s + "\n\ngit push", "x=$(git push) " + s} {
			read := cmdline.Read(line)
			found := read.Unclear != ""
			for _, a := range read.Acts {
				found = found || a.Is("git push") == cmdline.Yes
			}
			if !found && !cmdline.Write(s).Opaque {
				t.Errorf("%q: %+v", line, read)
			}
		}
	})
}
