package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// useHelpFunctions gives the help template its functions. cobra keeps them in a
// table of the process, so once is enough.
func useHelpFunctions() {
	cobra.AddTemplateFunc("indent", func(text string) string {
		return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
	})
	cobra.AddTemplateFunc("wrapped", func(flags *pflag.FlagSet) string {
		return strings.TrimRight(flags.FlagUsagesWrapped(helpColumns), "\n")
	})
}
