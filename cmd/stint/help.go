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
	cobra.AddTemplateFunc("wrapped", wrapped)
}

// wrapped is the help for flags, each as one text that is wrapped where a line is full.
func wrapped(flags *pflag.FlagSet) string {
	flags.VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "\n", " ") })
	return strings.TrimRight(flags.FlagUsagesWrapped(helpColumns), "\n")
}
