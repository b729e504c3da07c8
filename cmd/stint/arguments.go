package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nameArguments makes every command say which word of its line is missing or one
// too many; the library counts them only.
func nameArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		nameArguments(sub)
	}
	fits := cmd.Args
	if fits == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := fits(cmd, args)
		var said *problem
		if err == nil || errors.As(err, &said) {
			return err
		}
		return wrongArguments(cmd, args)
	}
}

func wrongArguments(cmd *cobra.Command, args []string) error {
	what, next := "cannot run "+cmd.CommandPath(), cmd.CommandPath()+" --help"
	wanted := argumentNames(cmd)
	if len(args) < len(wanted) && !strings.HasPrefix(wanted[len(args)], "[") {
		return usage(what, strings.TrimSuffix(wanted[len(args)], "…")+" is missing: "+cmd.UseLine(), next)
	}
	why := strconv.Quote(args[min(len(wanted), len(args)-1)]) + " is one word too many: " + cmd.UseLine()
	if len(wanted) > 0 {
		why += "; put what belongs together in quotes"
	}
	return usage(what, why, next)
}

// argumentNames are the words of a command's usage that stand for arguments.
func argumentNames(cmd *cobra.Command) []string {
	var names []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(word, "-") {
			break
		}
		names = append(names, word)
	}
	return names
}

// flagError words what the flag parser refuses.
func flagError(cmd *cobra.Command, err error) error {
	what := err.Error()
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		what = fmt.Sprintf("--%s cannot be %q: %s", bad.GetFlag().Name, bad.GetValue(), valueWanted(bad))
	}
	return usage(what, "", cmd.CommandPath()+" --help")
}

func valueWanted(bad *pflag.InvalidValueError) string {
	var number *strconv.NumError
	switch {
	case bad.GetFlag().Value.Type() == "bool":
		return "it is true or false"
	case errors.Is(bad, strconv.ErrRange):
		return "the number is too large"
	case errors.As(bad, &number):
		return "it is a whole number"
	case strings.HasPrefix(bad.Unwrap().Error(), "time: "):
		return "it is a length of time such as 90s, 15m or 2h"
	}
	return bad.Unwrap().Error()
}
