package main

import (
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stint/api"
)

// flagNames are the flags that set a field of the REST interface under a name of their own.
// All others are called as their field is, without the unit.
var flagNames = map[string]string{
	"timeZone": "tz", "causes": "tell", "quietFrom": "quiet-hours", "quietTo": "quiet-hours", "digestAt": "digest", "expiresAt": "days",
	"run.command": "run", "run.workFolder": "work-folder", "run.env": "env", "run.check": "check", "run.expect": "expect", "run.strict": "strict",
	"sessionSpendLimitMicros": "session-limit", "dailySpendLimitMicros": "daily-limit",
}

// sayFlags has a refusal name what people wrote, the flags of cmd, instead of the fields of the
// request that was made of them, and lead to the help that has them. Fields that no flag sets stay
// as they are, and so does the document of --json.
func (p *problem) sayFlags(cmd *cobra.Command) {
	if p.refused == nil || p.why != refusedBecause(p.refused) {
		return
	}
	said := *p.refused
	said.Fields = slices.Clone(said.Fields)
	for i, f := range said.Fields {
		if flag := flagSetting(cmd.Flags(), f.Field); flag != "" {
			said.Fields[i].Field = "--" + flag
			if said.Code == api.CodeInvalid { // what conflicts with something has a next step of its own
				p.next = cmd.CommandPath() + " --help"
			}
		}
	}
	said.Fields = slices.CompactFunc(said.Fields, func(a, b api.FieldError) bool { return a == b })
	p.why = refusedBecause(&said)
}

// flagSetting is the flag that sets a field, or "" if none of these does.
func flagSetting(flags *pflag.FlagSet, field string) string {
	field, _, _ = strings.Cut(field, "[")
	name := flagNames[field]
	if name == "" {
		name = dashed(strings.TrimSuffix(field, "Seconds"))
	}
	for _, name := range []string{name, strings.TrimSuffix(name, "s")} { // one for each of a list
		if f := flags.Lookup(name); f != nil && f.Changed {
			return name
		}
	}
	return ""
}

// dashed writes maxConcurrent as max-concurrent.
func dashed(field string) string {
	var out strings.Builder
	for _, r := range field {
		if unicode.IsUpper(r) {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
