package proc

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// BL-118: one endless line neither ends the reader nor fills memory, and what comes after it
// is read.
func TestOutput_EndlessLineIsCutAndReadingGoesOn(t *testing.T) {
	t.Parallel()
	const size = 20 << 20
	spec := testSpec("/bin/sh", "-c", `head -c 20971520 /dev/zero | tr '\0' x; echo; echo result; echo trouble >&2`)
	var total, longest int
	tails := map[Stream]string{}
	p, err := Start(t.Context(), spec, func(c Chunk) {
		total += len(c.Data)
		longest = max(longest, len(c.Data))
		tail := tails[c.Stream] + string(c.Data)
		tails[c.Stream] = tail[max(0, len(tail)-10):]
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the end", p.Done())
	if r := p.Wait(); !r.Success() || r.OutputCut {
		t.Errorf("%+v", r)
	}
	if total != size+len("\nresult\ntrouble\n") || longest > MaxChunk {
		t.Errorf("%d bytes, longest chunk %d", total, longest)
	}
	if !strings.HasSuffix(tails[Stdout], "\nresult\n") || tails[Stderr] != "trouble\n" {
		t.Errorf("ends with %q", tails)
	}
}

// A whole character is never split, and invalid bytes come through unchanged.
func TestOutput_CharactersStayWhole(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for text.Len() < 5*MaxChunk {
		text.WriteString("aé€𝄞") // 10 bytes: every kind lands on a border some time
	}
	spec := testSpec("cat")
	spec.Stdin = strings.NewReader(text.String())
	var got bytes.Buffer
	p, err := Start(t.Context(), spec, func(c Chunk) {
		got.Write(c.Data)
		if !utf8.Valid(c.Data) {
			t.Errorf("a chunk of %d bytes begins with %q and ends with %q", len(c.Data), c.Data[:4], c.Data[len(c.Data)-4:])
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the end", p.Done())
	if got.String() != text.String() {
		t.Errorf("%d bytes of %d came", got.Len(), text.Len())
	}
	spec = testSpec("cat")
	spec.Stdin = strings.NewReader("\xff\xfe line\n\xc3")
	if _, out := run(t, t.Context(), spec); out != "\xff\xfe line\n\xc3" {
		t.Errorf("odd bytes came as %q", out)
	}
}

// A prompt without a line's end is shown while the agent waits.
func TestOutput_PieceOfALineIsLive(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec(agentArgv("print", "working...")...)
	spec.Stdin = read
	seen := make(chan struct{})
	p, err := Start(t.Context(), spec, func(c Chunk) {
		if string(c.Data) == "working..." {
			close(seen)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the piece of a line", seen)
	write.Close()
	await(t, "the end", p.Done())
}

// The reader waits for the sink, and the agent for the reader. The sink is never
// called twice at a time.
func TestOutput_SlowSinkHoldsTheAgent(t *testing.T) {
	t.Parallel()
	spec := testSpec(agentArgv("flood", "2000000", "100")...)
	first, release := make(chan struct{}), make(chan struct{})
	var total int
	p, err := Start(t.Context(), spec, func(c Chunk) {
		if total == 0 {
			close(first)
			<-release
		}
		total += len(c.Data)
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the first chunk", first)
	// The agent has far more to write than pipe and buffer hold, so it can't end.
	select {
	case <-p.Done():
		t.Error("it ended though nobody took its output")
	case <-time.After(200 * time.Millisecond):
	}
	if e, err := lookup(p.Record().Agent.Pid); err != nil || e.dead {
		t.Error("the agent ended though nobody took its output")
	}
	close(release)
	await(t, "the end", p.Done())
	if r := p.Wait(); !r.Success() || total != 2000000 {
		t.Errorf("%+v after %d bytes", r, total)
	}
}

// 50 MB go through a worker whose memory stays small.
func TestOutput_FloodKeepsTheWorkerSmall(t *testing.T) {
	t.Parallel()
	const size = 50_000_000
	began := time.Now()
	w := startWorker(t, "count", agentArgv("flood", "50000000", "1000"))
	r := w.next(t)
	if r.Bytes != size || r.Cause != "" {
		t.Errorf("%d bytes of %d came, cause %q", r.Bytes, size, r.Cause)
	}
	if r.PeakKB > 64<<10 {
		t.Errorf("the worker grew to %d KiB", r.PeakKB)
	}
	t.Logf("50 MB in %v, worker's peak %d KiB", time.Since(began).Round(time.Millisecond), r.PeakKB)
}

// Output that arrives after the deadline is handed over only when the agent is gone.
// contract 4.7
func TestOutput_AfterTheDeadlineTheAgentGoesFirst(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	asked := make(chan struct{}, 1)
	handed := make(chan struct{}, 1)
	o := newOutput(r, stderr, func(Chunk) { handed <- struct{}{} }, func() bool { asked <- struct{}{}; return true })
	o.start()
	if _, err := w.WriteString("late\n"); err != nil {
		t.Fatal(err)
	}
	await(t, "the look at the deadline", asked)
	select {
	case <-handed:
		t.Error("handed over before the agent was gone")
	default:
	}
	w.Close()
	o.finish()
	await(t, "the late output", handed)
}

// A process outside the tree that holds the pipe can't block Wait.
func TestOutput_StrangerWithThePipeIsGivenUp(t *testing.T) {
	t.Parallel()
	stdout, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	stderr, closed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	var got bytes.Buffer
	o := newOutput(stdout, stderr, func(c Chunk) { got.Write(c.Data) }, func() bool { return false })
	o.start()
	if _, err := held.WriteString("last words"); err != nil {
		t.Fatal(err)
	}
	if cut := o.finish(); !cut || got.String() != "last words" {
		t.Errorf("cut %v, got %q", cut, got.String())
	}
}

func TestWholeRunes_HoldsBackOnlyBeginnings(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"": 0, "a": 1, "aé": 3, "a\xc3": 1, "€": 3, "\xe2\x82": 0, "x\xe2\x82": 1, "𝄞": 4, "\xf0\x9d\x84": 0,
		"\xff": 1, "a\x80\x80\x80\x80": 5, "\xc3\xc3": 1,
	} {
		if got := WholeRunes([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}
