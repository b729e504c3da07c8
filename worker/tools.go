package worker

import "os"

// ToolServer are the arguments with which agent programs start this program as the server of
// Stint's tools. It acts as the run whose agent the program is, and as nobody else.
var ToolServer = []string{"mcp", "--run"}

// tools is the command of that server, nil where the owner doesn't want the agent to have it.
func (o *runSettings) tools() []string {
	if !o.stintTools {
		return nil
	}
	return ourselves(ToolServer...)
}

// ourselves is this program again with some arguments, for agent programs to start: nil where
// it can't be found.
func ourselves(args ...string) []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return append([]string{self}, args...)
}
