package agenttest

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

const serverArg = "agenttest-tool-server"

// ToolServer is the command of a tool server with a single tool, "act", which creates a file
// of a given name in a folder.
func ToolServer(t testing.TB, folder string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, serverArg, folder}
}

// ServerMain turns the process into a tool server if a command of [ToolServer] started it, and
// then doesn't return. Call it in TestMain.
func ServerMain() {
	if len(os.Args) != 3 || os.Args[1] != serverArg {
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var ask struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version   string            `json:"protocolVersion"`
				Arguments map[string]string `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &ask) != nil || len(ask.ID) == 0 {
			continue
		}
		answer := map[string]any{}
		switch ask.Method {
		case "initialize":
			answer = map[string]any{
				"protocolVersion": ask.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "witness", "version": "1"},
			}
		case "tools/list":
			answer = map[string]any{"tools": []any{map[string]any{
				"name": "act", "description": "Acts.", "inputSchema": map[string]any{
					"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"},
				},
			}}}
		case "tools/call":
			if os.WriteFile(filepath.Join(os.Args[2], filepath.Base(ask.Params.Arguments["name"])), nil, 0o600) != nil {
				os.Exit(1)
			}
			answer = map[string]any{"content": []any{map[string]any{"type": "text", "text": "done"}}}
		}
		_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": ask.ID, "result": answer})
	}
	os.Exit(0)
}
