package main

import (
	"fmt"
	"strings"
)

// unitMark is in each unit that we write, so that none of anybody else's is overwritten or
// removed.
const unitMark = "# Made by stint service install. Change it with systemctl edit; installing again writes it anew."

// packageMark is in the units of the packages, which the package manager keeps.
const packageMark = "# Part of Stint's package. Change it with systemctl edit."

// The names of the units.
const (
	socketUnit = "stint.socket"
	serverUnit = "stint.service"
	workerUnit = "stint-worker.service"
)

var unitNames = []string{socketUnit, serverUnit, workerUnit}

// service is what the units run.
type service struct {
	system  bool
	program string // absolute path
	addr    string
	dataDir string // "" = the default
	runAs   string // of a system's service
	env     string // a file with further variables, which needn't be there

	packaged bool // by a package: nothing in it is of one machine
}

// programOfPackages is where packages put the program, and userOfPackages as whom they run the
// machine's service.
const (
	programOfPackages = "/usr/bin/stint"
	userOfPackages    = "stint"
)

// packaged are the units that packages have: of the machine's service, or of a person's own.
func packaged(system bool) service {
	s := service{system: system, program: programOfPackages, addr: defaultAddr, packaged: true}
	if system {
		s.runAs = userOfPackages
	}
	return s
}

// systemData is where a system's service keeps its data unless told otherwise: its state
// directory, which systemd makes.
const systemData = "/var/lib/stint"

func (s service) data() string {
	if s.dataDir == "" && s.system {
		return systemData
	}
	return s.dataDir
}

// units are the texts by name. The server and the worker are units of their own, so that the
// server can be restarted, for an upgrade, while the agents run on.
func (s service) units() map[string]string {
	return map[string]string{socketUnit: s.socket(), serverUnit: s.server(), workerUnit: s.worker()}
}

func (s service) socket() string {
	return s.unit("[Unit]", "Description=Stint, where it is reached", "", "[Socket]", "ListenStream="+s.addr, "NoDelay=true", "",
		"[Install]", "WantedBy=sockets.target")
}

func (s service) server() string {
	lines := []string{
		"[Unit]", "Description=Stint, the coordinator of agent runs", "Requires=" + socketUnit, "After=" + socketUnit, "",
		"[Service]", "Type=notify", "NotifyAccess=main", "WatchdogSec=60", "ExecStart=" + s.command("serve"),
		"Restart=always", "RestartSec=1", "TimeoutStopSec=20", "UMask=0077",
		// It runs no agents: those are the worker's.
		"NoNewPrivileges=true", "LockPersonality=true", "RestrictSUIDSGID=true", "RestrictRealtime=true",
		"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", "SystemCallArchitectures=native",
	}
	if s.system {
		lines = append(lines, "ProtectSystem=strict", "ProtectHome=read-only", "PrivateTmp=true", "PrivateDevices=true", "ProtectKernelTunables=true",
			"ProtectKernelModules=true", "ProtectKernelLogs=true", "ProtectControlGroups=true", "ProtectClock=true", "ProtectHostname=true", "CapabilityBoundingSet=")
		if s.data() != systemData {
			lines = append(lines, "ReadWritePaths="+quoteUnit(s.data()))
		}
	}
	lines = append(lines, s.common()...)
	return s.unit(append(lines, "", "[Install]", "WantedBy="+s.target())...)
}

func (s service) worker() string {
	lines := []string{
		"[Unit]", "Description=Stint, the worker that runs agents", "Wants=" + serverUnit, "After=" + serverUnit, "",
		"[Service]", "ExecStart=" + s.command("worker run"), "Restart=always", "RestartSec=5", "UMask=0077",
		// Agents may do what their user may: the sandbox is the agent's own, see docs/safety.md. The
		// worker ends their processes in stages, so it alone is told, and has the time.
		"KillMode=mixed", "TimeoutStopSec=90",
		"Environment=STINT_URL=http://" + s.addr,
	}
	lines = append(lines, s.common()...)
	return s.unit(append(lines, "", "[Install]", "WantedBy="+s.target())...)
}

// common are the lines of both services.
func (s service) common() []string {
	lines := []string{"EnvironmentFile=-" + strings.ReplaceAll(s.env, "%", "%%")}
	if s.packaged {
		lines[0] = "EnvironmentFile=-%E/stint/service.env" // /etc, or the person's own ~/.config
	}
	if s.system {
		lines = append(lines, "User="+s.runAs)
		if s.data() == systemData {
			lines = append(lines, "StateDirectory=stint", "StateDirectoryMode=0700")
		}
	}
	return lines
}

func (s service) target() string {
	if s.system {
		return "multi-user.target"
	}
	return "default.target"
}

func (s service) command(verb string) string {
	line := `"` + strings.ReplaceAll(s.program, "%", "%%") + `" ` + verb // in the program's name no variable is looked for
	if dir := s.data(); dir != "" {
		line += " --data-dir " + quoteUnit(dir)
	}
	return line
}

func (s service) unit(lines ...string) string {
	mark := unitMark
	if s.packaged {
		mark = packageMark
	}
	return mark + "\n" + strings.Join(lines, "\n") + "\n"
}

// quoteUnit writes one word of a command line as systemd.service(5) reads it.
func quoteUnit(word string) string {
	word = strings.NewReplacer("%", "%%", "$", "$$", `\`, `\\`, `"`, `\"`).Replace(word)
	return fmt.Sprintf(`"%s"`, word)
}
