package workertest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stint/worker/proc"
)

const agentArg = "workertest-agent"

// AgentMain turns the process into a fake agent if a command of [Agent] started it, and then
// doesn't return. Call it in TestMain.
func AgentMain() {
	if len(os.Args) < 3 || os.Args[1] != agentArg {
		return
	}
	play, known := plays[os.Args[2]]
	if !known {
		fmt.Fprintf(os.Stderr, "no play %q\n", os.Args[2])
		os.Exit(99)
	}
	play(os.Args[3:])
	os.Exit(0)
}

// Agent is the command that runs a play: this test binary again.
//
//	stamp FILE N     notes start, one tick each 10 ms and end in FILE; ends after N ticks, 0 = never
//	deaf FILE        as stamp FILE 0, and ignores interrupt and TERM
//	flood BYTES      prints as fast as it can, in numbered lines
//	pieces FILE MS   prints what is in FILE byte by byte, pausing
//	loud-claude BYTES, loud-codex BYTES   see [Loud]
//	chat FILE        notes start, each line that it reads and end in FILE and echoes the line; ends with its input, or at the line "die"
func Agent(t testing.TB, play string, args ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("find the test binary: %v", err)
	}
	return slices.Concat([]string{self, agentArg, play}, args)
}

// plays are what fake agents do. It is a constant table.
var plays = map[string]func(args []string){
	"stamp":  stamp,
	"deaf":   deaf,
	"flood":  flood,
	"pieces": pieces,
	"chat":   chat,

	"loud-claude": loudClaude,
	"loud-codex":  loudCodex,
}

func number(args []string, i int) int {
	if i >= len(args) {
		return 0
	}
	n, err := strconv.Atoi(args[i])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
	return n
}

// stamp appends one line a moment, each with its own write, so that a killed agent leaves
// exactly what it did.
func stamp(args []string) {
	f, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(97)
	}
	note := func(what string) {
		fmt.Fprintf(f, "%s %s %d %d\n", what, os.Getenv("STINT_FENCE"), os.Getpid(), proc.BootNow())
	}
	note("start")
	fmt.Println("stamping")
	for n, limit := 0, number(args, 1); limit == 0 || n < limit; n++ {
		time.Sleep(10 * time.Millisecond)
		note("tick")
	}
	note("end")
	fmt.Println("done")
}

func deaf(args []string) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	stamp(args[:1])
}

func flood(args []string) {
	w := bufio.NewWriterSize(os.Stdout, 64<<10)
	Flood(w, number(args, 0))
	if err := w.Flush(); err != nil {
		os.Exit(96)
	}
}

// Flood writes what the agent of that name prints: lines of 100 bytes, each with its number.
func Flood(w io.Writer, bytes int) {
	for i := range bytes / 100 {
		fmt.Fprintf(w, "%09d %s\n", i, strings.Repeat("x", 89))
	}
}

func pieces(args []string) {
	pause := time.Duration(number(args, 1)) * time.Millisecond
	text, err := os.ReadFile(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(95)
	}
	for _, b := range text {
		_, _ = os.Stdout.Write([]byte{b})
		time.Sleep(pause)
	}
}

// AgentRun is what one stamping agent left in its file.
type AgentRun struct {
	Fence       string
	Pid         int
	Start, Last proc.BootTime
	Ended       bool // it ended by itself
}

// Lives reads the file of stamping agents, in the order of their starts. A file that isn't
// there has none.
func Lives(t testing.TB, file string) []AgentRun {
	t.Helper()
	b, err := os.ReadFile(filepath.Clean(file))
	b = b[:bytes.LastIndexByte(b, '\n')+1] // one may just be being written
	if os.IsNotExist(err) || (err == nil && len(b) == 0) {
		return nil
	}
	if err != nil {
		t.Fatalf("read the stamps: %v", err)
	}
	byPid := map[int]int{}
	var out []AgentRun
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var what, fence string
		var pid int
		var at int64
		if _, err := fmt.Sscan(line, &what, &fence, &pid, &at); err != nil {
			t.Fatalf("the stamp %q can't be read: %v", line, err)
		}
		i, seen := byPid[pid]
		if !seen {
			i = len(out)
			byPid[pid] = i
			out = append(out, AgentRun{Fence: fence, Pid: pid, Start: proc.BootTime(at)})
		}
		out[i].Last = proc.BootTime(at)
		out[i].Ended = out[i].Ended || what == "end"
	}
	return out
}

// Apart fails the test when two agents ran at the same time.
func Apart(t testing.TB, lives []AgentRun) {
	t.Helper()
	for i := 1; i < len(lives); i++ {
		if lives[i].Start <= lives[i-1].Last {
			t.Errorf("two agents ran at once: fence %s until %v, fence %s from %v", lives[i-1].Fence, lives[i-1].Last, lives[i].Fence, lives[i].Start)
		}
	}
}

func chat(args []string) {
	f, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(97)
	}
	fmt.Fprintf(f, "start %s %d %d\n", os.Getenv("STINT_FENCE"), os.Getpid(), proc.BootNow())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Fprintf(f, "%s %s %d %d\n", lines.Text(), os.Getenv("STINT_FENCE"), os.Getpid(), proc.BootNow())
		if lines.Text() == "die" {
			fmt.Fprintln(os.Stderr, "a bad end")
			os.Exit(3)
		}
		fmt.Println(lines.Text())
	}
	fmt.Fprintf(f, "end %s %d %d\n", os.Getenv("STINT_FENCE"), os.Getpid(), proc.BootNow())
}
