package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nameArguments makes every command say which word of its line is missing or too many; the
// library only counts them.
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

// flagError rewords what the flag parser refuses.
func flagError(cmd *cobra.Command, err error) error {
	what, why := err.Error(), ""
	var bad *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &bad):
		what = fmt.Sprintf("--%s cannot be %q: %s", bad.GetFlag().Name, bad.GetValue(), valueWanted(bad))
	case errors.As(err, &unknown):
		word := "--" + unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			word = "-" + short
		}
		what, why = fmt.Sprintf("%s has no flag %s", cmd.CommandPath(), strconv.Quote(word)), afterDashes(cmd)
	}
	return usage(what, why, cmd.CommandPath()+" --help")
}

// afterDashes says how to give a text that begins with a dash to a command that takes one, ""
// for the others.
func afterDashes(cmd *cobra.Command) string {
	words := argumentNames(cmd)
	if len(words) == 0 {
		return ""
	}
	last := strings.TrimSuffix(strings.Trim(words[len(words)-1], "[]…"), "|-")
	words[len(words)-1] = "-- '-" + last + "'"
	return "put a text that begins with a dash after --, behind all flags: " + cmd.CommandPath() + " " + strings.Join(words, " ")
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
