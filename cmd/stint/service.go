package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/server"
)

func (c *cli) serviceCommand() *cobra.Command {
	return group(&cobra.Command{Use: "service", Short: "Have Stint start with this machine, by systemd or launchd"},
		c.serviceInstallCommand(), c.serviceUninstallCommand(), c.serviceStatusCommand(), c.serviceLogsCommand())
}

// serviceFlags say whose service it is.
type serviceFlags struct{ user, system bool }

func (f *serviceFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.user, "user", false, "your own service (the default, but for root)")
	cmd.Flags().BoolVar(&f.system, "system", false, "a service of the machine, which root installs")
	cmd.MarkFlagsMutuallyExclusive("user", "system")
}

// ofSystem reports whether the machine's service is meant.
func (f *serviceFlags) ofSystem() bool { return f.system || !f.user && os.Geteuid() == 0 }

func (c *cli) serviceInstallCommand() *cobra.Command {
	var f serviceFlags
	var s service
	var print bool
	cmd := &cobra.Command{
		Use: "install", Short: "Write the units and start them", Args: cobra.NoArgs,
		Long: "Writes three units for systemd and starts them: a socket, which stays open while\n" +
			"the server is replaced, the server, and the worker that runs agents. Settings are\n" +
			"those of stint config; variables can also be in ~/.config/stint/service.env, those\n" +
			"of the machine's service in /etc/stint/service.env. On macOS it writes two agents\n" +
			"for launchd.\n\n" +
			"After an upgrade of the program: systemctl --user restart stint. Agents that run\n" +
			"are the worker's and run on.",
		Example: "stint service install\nsudo stint service install --system --run-as ann\nstint service install --print",
		RunE: func(cmd *cobra.Command, _ []string) error {
			what := "cannot install the service"
			s.system = f.ofSystem()
			if err := c.fillService(&s, what); err != nil {
				return err
			}
			if c.goos == "darwin" {
				return launchd{c, what}.installOrPrint(cmd.Context(), s, print)
			}
			if print {
				for _, name := range unitNames {
					if err := c.say("# %s\n%s", name, s.units()[name]); err != nil {
						return err
					}
				}
				return nil
			}
			return c.installService(cmd.Context(), what, s)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&s.addr, "addr", "", "where the server is reached, a loopback `HOST:PORT`\n(STINT_ADDR; else "+defaultAddr+")")
	cmd.Flags().StringVar(&s.runAs, "run-as", "", "the `USER` that a machine's service runs as, its agents too")
	cmd.Flags().BoolVar(&print, "print", false, "print the units and change nothing")
	return cmd
}

// fillService finds out what the units need, and refuses what can't become a service.
func (c *cli) fillService(s *service, what string) error {
	from := "--addr"
	if s.addr == "" {
		from, s.addr = "STINT_ADDR, or server.addr of the settings", cmp.Or(c.env("STINT_ADDR"), defaultAddr)
	}
	if err := server.CheckAddr(s.addr, server.Public{}); err != nil {
		return usage(what, from+": "+err.Error()+"; a base URL is set by STINT_BASE_URL in the settings", "stint service install --addr "+defaultAddr)
	}
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return &problem{code: exitFailed, what: what, why: "the program's own file isn't found: " + api.Plain(err)}
	}
	if strings.HasPrefix(program, os.TempDir()) && strings.Contains(program, "go-build") {
		return usage(what, "this is a program that go run has built for once", "go install ./cmd/stint, then stint service install")
	}
	if strings.ContainsAny(program, "\"'\\") {
		return usage(what, "systemd starts no program whose path has quotes or backslashes in it", "move the program to ~/.local/bin")
	}
	s.program = program
	if c.goos == "darwin" && s.system {
		return usage(what, "on macOS Stint runs as your own service", "stint service install --user")
	}
	if c.flags.dataDir != "" || c.env("STINT_DATA_DIR") != "" {
		d, err := c.dataDir()
		if err != nil {
			return err
		}
		s.dataDir = string(d)
	}
	if !s.system {
		config, err := os.UserConfigDir()
		if err != nil {
			return &problem{code: exitFailed, what: what, why: api.Plain(err)}
		}
		s.env = filepath.Join(config, "stint", "service.env")
		return nil
	}
	s.env = "/etc/stint/service.env"
	if s.runAs == "" {
		return usage(what, "--run-as is missing: the user whose rights the server and the agents have", "sudo stint service install --system --run-as "+c.invoker())
	}
	if _, err := user.Lookup(s.runAs); err != nil {
		return usage(what, "--run-as: there is no user "+strconv.Quote(s.runAs), "")
	}
	if s.runAs == "root" {
		return usage(what, "--run-as: agents would run as root and could do anything", "sudo stint service install --system --run-as "+c.invoker())
	}
	return nil
}

// invoker is the person behind sudo, or a name to put in their place.
func (c *cli) invoker() string {
	if name := c.env("SUDO_USER"); name != "" && name != "root" {
		return name
	}
	return "USER"
}

// systemd is one of the machine's service managers.
type systemd struct {
	c      *cli
	system bool
	what   string
}

func (d systemd) folder() (string, error) {
	if d.system {
		return "/etc/systemd/system", nil
	}
	config, err := os.UserConfigDir()
	return filepath.Join(config, "systemd", "user"), err
}

// run calls one of systemd's programs and shows its output to people.
func (d systemd) run(ctx context.Context, program string, args ...string) error {
	if d.c.goos != "linux" {
		return &problem{code: exitFailed, what: d.what, why: "services are made for systemd, which this system doesn't have", next: "have your system start: stint up --no-open"}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return &problem{code: exitFailed, what: d.what, why: "this machine has no " + program, next: "have your system's own supervisor start: stint serve, and stint worker run"}
	}
	if !d.system {
		args = append([]string{"--user"}, args...)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = d.c.out, &said
	if err := cmd.Run(); err != nil {
		why := strings.TrimSpace(said.String())
		if why == "" {
			var ended *exec.ExitError
			if errors.As(err, &ended) {
				return quietly(exit(ended.ExitCode())) // it has said what there is
			}
			why = api.Plain(err)
		}
		p := &problem{code: exitFailed, what: d.what, why: program + " says: " + why}
		if strings.Contains(why, "connect to bus") || strings.Contains(why, "booted with systemd") {
			p.next = "sign in as yourself (su starts no manager of yours); where systemd doesn't run, have a supervisor start: stint serve, and stint worker run"
		}
		return p
	}
	return nil
}

// ours reads a unit that is there; one that isn't ours is refused.
func (d systemd) ours(path string) (text string, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(string(b), unitMark) {
		return "", &problem{code: exitConflict, what: d.what, why: path + " is there already, and not made by this command", next: "move it away first"}
	}
	return string(b), nil
}

func (c *cli) installService(ctx context.Context, what string, s service) error {
	d := systemd{c, s.system, what}
	folder, err := d.folder()
	if err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	units := s.units()
	for _, name := range unitNames {
		if _, err := d.ours(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // as systemd's own
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	for _, name := range unitNames {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(units[name]), 0o644); err != nil { //nolint:gosec // units are read by everybody
			return &problem{code: exitFailed, what: what, why: api.Plain(err), next: "sudo stint service install --system --run-as " + c.invoker()}
		}
	}
	for _, args := range [][]string{{"daemon-reload"}, slices.Concat([]string{"enable"}, unitNames), slices.Concat([]string{"restart"}, unitNames)} {
		if err := d.run(ctx, "systemctl", args...); err != nil {
			return err
		}
	}
	if c.flags.json || c.flags.quiet {
		return c.show(map[string]any{"units": unitNames, "url": "http://" + s.addr}, serverUnit, nil)
	}
	c.hint("Stint runs at %s and starts with the machine. Its log: stint service logs", server.ForBrowsers("http://"+s.addr))
	if !s.system {
		c.hint("It runs while you are signed in. To have it run always: loginctl enable-linger")
	}
	return nil
}

func (c *cli) serviceUninstallCommand() *cobra.Command {
	var f serviceFlags
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Stop the units and remove them", Args: cobra.NoArgs,
		Long: "Stops the server and the worker, which ends the agents that run, and removes the\nunits. The data directory stays.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.goos == "darwin" {
				return launchd{c, "cannot uninstall the service"}.uninstall(cmd.Context())
			}
			d := systemd{c, f.ofSystem(), "cannot uninstall the service"}
			folder, err := d.folder()
			if err != nil {
				return &problem{code: exitFailed, what: d.what, why: api.Plain(err)}
			}
			var there []string
			for _, name := range unitNames {
				text, err := d.ours(filepath.Join(folder, name))
				if err != nil {
					return err
				}
				if text != "" {
					there = append(there, name)
				}
			}
			if len(there) == 0 {
				return &problem{code: exitNotFound, what: d.what, why: "no service is installed", next: "stint service install"}
			}
			if err := d.run(cmd.Context(), "systemctl", slices.Concat([]string{"disable", "--now"}, there)...); err != nil {
				return err
			}
			for _, name := range there {
				if err := os.Remove(filepath.Join(folder, name)); err != nil {
					return &problem{code: exitFailed, what: d.what, why: api.Plain(err)}
				}
			}
			if err := d.run(cmd.Context(), "systemctl", "daemon-reload"); err != nil {
				return err
			}
			return c.done(map[string]any{"removed": there}, serverUnit, "Removed the service. The data stay where they are.")
		},
	}
	f.add(cmd)
	return cmd
}

func (c *cli) serviceStatusCommand() *cobra.Command {
	var f serviceFlags
	cmd := &cobra.Command{
		Use: "status", Short: "Show what systemd says of the units", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.goos == "darwin" {
				return launchd{c, "cannot show the service"}.status(cmd.Context())
			}
			d := systemd{c, f.ofSystem(), "cannot show the service"}
			return d.run(cmd.Context(), "systemctl", slices.Concat([]string{"status", "--no-pager"}, unitNames)...)
		},
	}
	f.add(cmd)
	return cmd
}

func (c *cli) serviceLogsCommand() *cobra.Command {
	var f serviceFlags
	var follow bool
	var lines int
	cmd := &cobra.Command{
		Use: "logs", Short: "Show what the server and the worker logged", Args: cobra.NoArgs,
		Example: "stint service logs -f",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.goos == "darwin" {
				return launchd{c, "cannot show the log"}.logs(cmd.Context(), lines, follow)
			}
			d := systemd{c, f.ofSystem(), "cannot show the log"}
			args := []string{"--no-pager", "-n", strconv.Itoa(lines), "-u", serverUnit, "-u", workerUnit}
			if follow {
				args = append(args, "-f")
			}
			return d.run(cmd.Context(), "journalctl", args...)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as more is logged")
	cmd.Flags().IntVarP(&lines, "lines", "n", 100, "show the last `N` lines")
	return cmd
}
