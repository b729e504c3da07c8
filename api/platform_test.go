package api

import (
	"go/build"
	"os"
	"slices"
	"strings"
	"testing"
)

// A build for Windows ends in the lowest package, with a sentence: it has a file that names what
// isn't defined anywhere.
func TestPlatform_WindowsIsRefusedByTheCompiler(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin", "windows"} {
		on := build.Default
		on.GOOS, on.GOARCH = system, "amd64"
		p, err := on.ImportDir(".", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := slices.Contains(p.GoFiles, "platform_windows.go"), system == "windows"; got != want {
			t.Errorf("on %s the refusal is compiled: %v", system, got)
		}
		const sentence = "Stint_runs_on_Windows_inside_WSL_2_alone__see_Platforms_in_README_md"
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), sentence) != (name == "platform_windows.go") {
				t.Errorf("%s has or lacks the sentence", name)
			}
		}
	}
	if readme, err := os.ReadFile("../README.md"); err != nil || !strings.Contains(string(readme), "\n## Platforms\n") {
		t.Errorf("README.md has no Platforms (%v)", err)
	}
}
