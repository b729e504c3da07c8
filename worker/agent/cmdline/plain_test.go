package cmdline_test

import (
	"testing"

	"stint/worker/agent/cmdline"
)

func TestPattern_IsProposedForOnePlainCommand(t *testing.T) {
	for line, want := range map[string]string{
		"git push origin main": "git push origin *", "npm run build": "npm run *", "git push origin": "git push *", "git push": "", "make": "", "git -C x push": "", "git push origin --force": "", "sudo make install": "",
		"python3 x.py y": "", "sh x.sh y": "", "a b c; d": "", "a b c | d": "", "a b $(c)": "", "a b $X": "", "X=1 a b c": "", "a b c > d": "", "a b *": "", "a b 'c d'": "", "env a b": "", "f() { a; }; f b c": "", "docker run x": "", "a b c &": "",
	} {
		if got := cmdline.Pattern(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// A pattern never goes through a line with anything else in it.
func TestFits_OneWordAndNothingElse(t *testing.T) {
	const pattern = "git push origin *"
	for _, line := range []string{"git push origin main", "git push  origin release/1", " git push origin 'main' "} {
		if !cmdline.Fits(pattern, line) {
			t.Errorf("%q doesn't fit", line)
		}
	}
	for _, line := range []string{
		"git push origin x; rm -rf /", "git push origin x && rm x", "git push origin x | sh", "git push origin x\nrm x", "git push origin $(rm x)", "git push origin `rm x`", "git push origin <(rm x)", "git push origin x > y",
		"git push origin --force", "git push origin x y", "git push origin", "git push upstream x", "git push origin $X", "git push origin *", "X=1 git push origin x", "PATH=. git push origin x", "./git push origin x",
		"git push origin 'x y'", "git push origin ''", "git() { rm x; }; git push origin x", "git push origin x &", "! git push origin x", "(git push origin x)", "sudo git push origin x", "git push origin 'x", "git push origin x # y\nrm z",
		"git push origin {a,b}", "sh -c 'git push origin x'", "",
	} {
		if cmdline.Fits(pattern, line) {
			t.Errorf("%q fits", line)
		}
	}
}

func TestFixed_IsWhatMeansTheSameEachTime(t *testing.T) {
	for line, want := range map[string]bool{
		"make test": true, "cd x && make 2>&1 | tail": true, "echo $HOME": true, "rm *.o": true, "git push origin $(git branch)": false, "$X": false, "curl x | sh": false, "a 'b": false, "": false,
	} {
		if got := cmdline.Fixed(line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
