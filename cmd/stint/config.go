package main

import (
	"strings"

	"github.com/spf13/cobra"

	"stint/server"
	"stint/worker"
)

func (c *cli) configCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "config", Short: "Show the settings and where they come from",
		Long: "Settings come from flags, else from the environment, else from one TOML file, else\n" +
			"they are the defaults. The file is the one that STINT_CONFIG names; else config.toml\n" +
			"in $XDG_CONFIG_HOME/stint; else /etc/stint/config.toml.",
	}, c.configShowCommand())
}

// shownSetting is a setting as it is now.
type shownSetting struct {
	Key      string `json:"key"`
	Value    string `json:"value"` // a secret's is masked
	Origin   string `json:"origin"`
	Variable string `json:"variable,omitzero"`
	Flag     string `json:"flag,omitzero"`
	File     string `json:"file,omitzero"` // where it is from there
}

// Where a setting comes from.
const (
	originFlag    = "flag"
	originEnv     = "environment"
	originFile    = "file"
	originDefault = "default"
)

const masked = "********"

func (c *cli) configShowCommand() *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use: "show", Short: "Show every setting, checked", Args: cobra.NoArgs,
		Long: "Shows every setting of the server, of workers and of commands as they would find it\n" +
			"when they were started here, without those that have no value. Secrets are masked.",
		Example: "stint config show --origin\nstint config show --json | jq -r '.items[] | select(.origin != \"default\") | .key'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.checkSettings(); err != nil {
				return err
			}
			t := table{head: []string{"SETTING", "VALUE"}, flex: 1}
			if origin {
				t.head = append(t.head, "ORIGIN")
			}
			all := c.shownSettings(cmd)
			if c.flags.json {
				return c.document(map[string]any{"items": all})
			}
			for _, s := range all {
				if s.Value == "" && !c.flags.quiet {
					continue
				}
				row := []string{s.Key, s.Value}
				if origin {
					row = append(row, s.from())
				}
				t.rows = append(t.rows, row)
			}
			return c.print(t, "")
		},
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "say where each comes from: a flag, a variable, the file or\nthe default")
	return cmd
}

func (s shownSetting) from() string {
	switch s.Origin {
	case originFlag:
		return "flag --" + s.Flag
	case originEnv:
		return "environment " + s.Variable
	case originFile:
		return "file " + s.File
	}
	return s.Origin
}

func (c *cli) shownSettings(cmd *cobra.Command) (out []shownSetting) {
	for _, s := range settings() {
		shown := shownSetting{Key: s.key, Value: s.otherwise, Origin: originDefault, Variable: s.variable, Flag: s.flag}
		flag := cmd.Flag(s.flag)
		switch value, inFile := c.file.values[s.key]; {
		case s.command == "" && flag != nil && flag.Changed:
			shown.Value, shown.Origin = flag.Value.String(), originFlag
		case s.variable != "" && c.outside(s.variable) != "":
			shown.Value, shown.Origin = c.outside(s.variable), originEnv
		case inFile:
			shown.Value, shown.Origin, shown.File = value, originFile, c.file.path
		}
		if s.secret && shown.Origin != originDefault {
			shown.Value = masked
		}
		out = append(out, shown)
	}
	return out
}

// outside is a variable of the process's environment, whatever the file says.
func (c *cli) outside(name string) string {
	if c.fromOutside == nil {
		return c.env(name)
	}
	return c.fromOutside(name)
}

// checkSettings reads the settings as a start of the server does.
func (c *cli) checkSettings() error {
	d, err := c.dataDir()
	if err != nil {
		return err
	}
	times, err := c.clocks()
	if err != nil {
		return err
	}
	if _, err := c.limits(&times.engine); err != nil {
		return err
	}
	if _, err := c.backups(backupFlags{}, d); err != nil {
		return err
	}
	if _, err := c.retention(nil); err != nil {
		return err
	}
	public, err := c.public(serverFlags{})
	if err == nil {
		err = server.CheckAddr(c.listenAddr(serverFlags{}), public)
	}
	if err != nil {
		return usage("cannot use the settings", err.Error(), "stint serve --help")
	}
	if err := checkMetricsAddr(c.env("STINT_METRICS_ADDR")); err != nil {
		return err
	}
	for _, name := range []string{"STINT_WEBHOOKS_INSIDE", "STINT_REGISTER_PROGRAMS"} {
		if _, err := c.isOn(false, name); err != nil {
			return err
		}
	}
	if _, _, err := c.provider(&providerFlags{}); err != nil {
		return err
	}
	if err := c.disks(&worker.Options{}); err != nil {
		return err
	}
	_, err = c.newLog(0)
	return err
}

// inFile adds to an error that names a variable or a flag which setting of the file it is about.
func (c *cli) inFile(text string) string {
	for _, s := range settings() {
		if _, ok := c.file.values[s.key]; !ok || s.variable != "" && c.outside(s.variable) != "" {
			continue
		}
		if s.flag != "" && c.ran != nil && c.ran.Flags().Changed(s.flag) {
			continue // the command line says something else
		}
		if hasName(text, s.variable) || s.flag != "" && hasName(text, "--"+s.flag) {
			text += " (set as " + s.key + " in " + c.file.path + ")"
		}
	}
	return text
}

// hasName reports whether a text has a name as a whole word.
func hasName(text, name string) bool {
	if name == "" {
		return false
	}
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, name)
		if !ok {
			return false
		}
		if after == "" || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-", rune(after[0])) {
			return true
		}
		rest = after
	}
}
