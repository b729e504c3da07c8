package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"stint/api"
	"stint/server"
	"stint/server/mcp"
)

const (
	// lastAnswers is how long calls in progress may take once stdin has ended.
	lastAnswers = time.Second

	// parentLook is how often the parent process is looked for: not every death of it closes
	// stdin, which another process may hold open too.
	parentLook = 500 * time.Millisecond

	longestCall = 2 << 20 // bytes of one message
)

func (c *cli) mcpCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "mcp",
		Short: "Serve Stint's tools to a program that speaks MCP",
		Long: "Serves Stint's tools to a program by the Model Context Protocol, on stdin and\n" +
			"stdout, with your rights or those of STINT_TOKEN. It ends with its stdin, or with\n" +
			"the program that started it. The same tools are at /mcp of the server's address.",
		Example: "stint mcp config claude > stint-mcp.json && claude --mcp-config stint-mcp.json",
	}, c.mcpConfigCommand())
	var run bool
	cmd.Flags().BoolVar(&run, "run", false, "serve the agent of a run, with its own token alone")
	if err := cmd.Flags().MarkHidden("run"); err != nil {
		panic(err) // the flag is the line above
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if run && !strings.HasPrefix(c.env(tokenVariable), api.RunTokenPrefix) {
			return &problem{code: exitNotAllowed, what: "cannot serve an agent", why: "STINT_TOKEN is not the token of a run", next: "a worker starts this for the agent of its session"}
		}
		return c.serveMCP(cmd.Context())
	}
	return cmd
}

// serveMCP serves the tools until stdin ends, the parent process dies, or ctx ends.
func (c *cli) serveMCP(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelError}))
	tools, err := mcp.NewServer(mcp.Options{Version: builtFrom().Version, Log: log, Caller: (&mcpCaller{cli: c}).caller})
	if err != nil {
		return err
	}
	stdin := &patient{Transport: &sdk.IOTransport{Reader: io.NopCloser(c.in), Writer: unclosed{c.out}, MaxLineLength: longestCall}}
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { served <- tools.Run(ctx, stdin) }()
	select {
	case err = <-served:
	case <-orphaned(ctx):
	case <-ctx.Done():
	}
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return &problem{code: exitFailed, what: "the program can't be served any more", why: api.Plain(err)}
	}
	return nil
}

// orphaned is closed once this process's parent is gone.
func orphaned(ctx context.Context) <-chan struct{} {
	gone, parent := make(chan struct{}), os.Getppid()
	go func() {
		look := time.NewTicker(parentLook)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if os.Getppid() != parent {
				close(gone)
				return
			}
		}
	}()
	return gone
}

// patient answers what was asked before stdin ended, if that doesn't take long: the protocol's
// library would drop it.
type patient struct{ sdk.Transport }

// Connect is part of sdk.Transport.
func (t *patient) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	return &patientConn{Connection: conn, answered: make(chan struct{}, 1)}, err
}

type patientConn struct {
	sdk.Connection
	open     atomic.Int64  // calls that have no answer yet
	answered chan struct{} // holds at most one sign that one was answered
}

// Read is part of sdk.Connection.
func (c *patientConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.open.Add(1)
	}
	if err != nil {
		late := time.After(lastAnswers)
		for c.open.Load() > 0 {
			select {
			case <-c.answered:
			case <-late:
				return m, err
			case <-ctx.Done():
				return m, err
			}
		}
	}
	return m, err
}

// Write is part of sdk.Connection.
func (c *patientConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if _, ok := m.(*jsonrpc.Response); ok {
		c.open.Add(-1)
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

// unclosed is a writer that is not the protocol's to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// mcpCaller finds the coordinator anew for each call: it may have been started, or started
// again on another port, after the program that calls.
type mcpCaller struct {
	cli *cli

	mu   sync.Mutex // guards what follows
	last target
	made mcp.Caller
}

func (m *mcpCaller) caller(context.Context) (mcp.Caller, error) {
	p, err := m.cli.find("cannot call Stint")
	if err != nil {
		return mcp.Caller{}, asFailure(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made.Client != nil && m.last.url == p.url && m.last.token == p.token && m.last.context == p.context {
		return m.made, nil
	}
	client, err := m.cli.clientOf("cannot call Stint", p)
	if err != nil {
		return mcp.Caller{}, asFailure(err)
	}
	m.last, m.made = p, mcp.Caller{Client: client, Pages: server.ForBrowsers(client.URL())}
	return m.made, nil
}

// asFailure puts a command's problem into the words of a tool's error.
func asFailure(err error) error {
	var p *problem
	if !errors.As(err, &p) {
		return err
	}
	f := &mcp.Failure{Code: "failed", Detail: p.Error() + ".", Next: "A person has to look: " + p.next}
	switch p.code {
	case exitUnreachable:
		f.Code = "unreachable"
	case exitNotAllowed:
		f.Code = string(api.CodeUnauthenticated)
	}
	return f
}
