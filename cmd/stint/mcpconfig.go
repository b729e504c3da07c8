package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
)

// mcpServer is how a program is to reach Stint's tools: by starting stint, or over HTTP.
type mcpServer struct {
	command []string
	env     map[string]string // that it needs besides its own; never a secret
	url     string            // "" = by starting stint
}

// tokenVariable holds the token that programs send over HTTP: it isn't written into their files.
const tokenVariable = "STINT_TOKEN"

// mcpPrograms write the settings of the programs that we know, by name.
var mcpPrograms = map[string]func(mcpServer) ([]byte, error){
	"claude": func(s mcpServer) ([]byte, error) { return asJSON(mcpServersFile{s.asServer("stdio", "http")}) },
	"json":   func(s mcpServer) ([]byte, error) { return asJSON(mcpServersFile{s.asServer("", "")}) },
	"codex":  mcpServer.forCodex, "opencode": mcpServer.forOpencode,
}

func (c *cli) mcpConfigCommand() *cobra.Command {
	var overHTTP bool
	cmd := &cobra.Command{
		Use:   "config claude|codex|opencode|json",
		Short: "Print the settings with which a program uses Stint's tools",
		Long: "Prints what to add to a program's settings so that it uses Stint's tools. With\n" +
			"--http the program calls the server itself, with the token in STINT_TOKEN; else\n" +
			"it starts stint mcp, which has your sign-in.",
		Example: "stint mcp config claude > stint-mcp.json\nstint mcp config codex >> ~/.codex/config.toml\nstint mcp config json --http",
		Args:    cobra.ExactArgs(1), ValidArgs: []string{"claude", "codex", "opencode", "json"},
		RunE: func(_ *cobra.Command, args []string) error {
			what := "cannot print settings for " + args[0]
			write, ok := mcpPrograms[args[0]]
			if !ok {
				return usage(what, "it is claude, codex, opencode or json", "stint mcp config --help")
			}
			s, err := c.mcpServer(what, overHTTP)
			if err != nil {
				return err
			}
			text, err := write(s)
			if err != nil {
				return err
			}
			_, err = c.out.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&overHTTP, "http", false, "call the server over HTTP, with the token in STINT_TOKEN")
	return cmd
}

// mcpServer is how programs reach the coordinator that this command would call.
func (c *cli) mcpServer(what string, overHTTP bool) (mcpServer, error) {
	if overHTTP {
		p, err := c.target(what)
		if err != nil {
			return mcpServer{}, err
		}
		at := strings.TrimSuffix(p.url, "/") + "/mcp"
		if w := c.workspace(); w != "" {
			at += "?" + url.Values{"workspace": {w}}.Encode()
		}
		return mcpServer{url: at}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return mcpServer{}, fmt.Errorf("find this program: %w", err)
	}
	s := mcpServer{command: []string{self, "mcp"}, env: map[string]string{}}
	if c.flags.dataDir != "" {
		d, err := c.dataDir()
		if err != nil {
			return mcpServer{}, err
		}
		s.command = append(s.command, "--data-dir", string(d))
	}
	if w := c.flags.workspace; w != "" {
		s.command = append(s.command, "--workspace", w)
	}
	for _, name := range []string{"STINT_URL", "STINT_CONTEXT", "STINT_DATA_DIR", "STINT_WORKSPACE"} {
		if value := c.env(name); value != "" {
			s.env[name] = value
		}
	}
	return s, nil
}

// mcpServersFile is the settings file that most programs read.
type mcpServersFile struct {
	Servers map[string]mcpServersEntry `json:"mcpServers"`
}

type mcpServersEntry struct {
	Type    string            `json:"type,omitzero"`
	Command string            `json:"command,omitzero"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitzero"`
	Headers map[string]string `json:"headers,omitempty"`
}

// asServer is the entry of that file; the programs differ in what they call the two ways.
func (s mcpServer) asServer(started, called string) map[string]mcpServersEntry {
	e := mcpServersEntry{Type: called, URL: s.url, Headers: map[string]string{"Authorization": "Bearer ${" + tokenVariable + "}"}}
	if s.url == "" {
		e = mcpServersEntry{Type: started, Command: s.command[0], Args: s.command[1:], Env: s.env}
	}
	return map[string]mcpServersEntry{"stint": e}
}

// forCodex is a table of Codex's config.toml. Codex starts programs with few of its variables.
func (s mcpServer) forCodex() ([]byte, error) {
	type table struct {
		Command     string            `toml:"command,omitempty"`
		Args        []string          `toml:"args,omitempty"`
		Env         map[string]string `toml:"env,omitempty"`
		Variables   []string          `toml:"env_vars,omitempty"`
		URL         string            `toml:"url,omitempty"`
		TokenEnvVar string            `toml:"bearer_token_env_var,omitempty"`
		ToolTimeout int               `toml:"tool_timeout_sec"` // wait_session is held for longer than Codex's own limit
	}
	t := table{URL: s.url, TokenEnvVar: tokenVariable, ToolTimeout: 90}
	if s.url == "" {
		t = table{Command: s.command[0], Args: s.command[1:], Env: s.env, Variables: []string{tokenVariable}, ToolTimeout: 90}
	}
	var b bytes.Buffer
	err := toml.NewEncoder(&b).Encode(map[string]any{"mcp_servers": map[string]table{"stint": t}})
	return b.Bytes(), err
}

// forOpencode is a member of opencode's opencode.json.
func (s mcpServer) forOpencode() ([]byte, error) {
	type entry struct {
		Type        string            `json:"type"`
		Command     []string          `json:"command,omitempty"`
		Environment map[string]string `json:"environment,omitempty"`
		URL         string            `json:"url,omitzero"`
		Headers     map[string]string `json:"headers,omitempty"`
		OAuth       *bool             `json:"oauth,omitzero"`
		Enabled     bool              `json:"enabled"`
		Timeout     int               `json:"timeout"` // milliseconds
	}
	e := entry{
		Type: "remote", URL: s.url, Headers: map[string]string{"Authorization": "Bearer {env:" + tokenVariable + "}"},
		OAuth: new(bool), Enabled: true, Timeout: 90_000,
	}
	if s.url == "" {
		e = entry{Type: "local", Command: s.command, Environment: s.env, Enabled: true, Timeout: 90_000}
	}
	return asJSON(map[string]any{"$schema": "https://opencode.ai/config.json", "mcp": map[string]entry{"stint": e}})
}

func asJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	return append(text, '\n'), err
}
