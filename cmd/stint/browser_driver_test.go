package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// theBrowser is started once for all browser tests; each test has its own incognito context,
// so that no cookie or preference carries over.
var theBrowser = sync.OnceValues(func() (context.Context, error) {
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, fmt.Errorf("no Chromium on the PATH; `make test` installs Debian's")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
	)
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	browser, _ := chromedp.NewContext(allocator)
	return browser, chromedp.Do(browser)
})

// tab is one page of the browser, watched for everything that must not happen.
type tab struct {
	testing.TB
	ctx  context.Context
	base string // of the dashboard, without a slash at the end

	mu       sync.Mutex
	bad      []string // console errors, policy violations, foreign requests, dialogs
	expected []string // parts of messages that this test itself provokes
}

// openTab opens a page in a new incognito context.
func openTab(t testing.TB, base string) *tab {
	t.Helper()
	browser, err := theBrowser()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	p := &tab{TB: t, ctx: ctx, base: base}
	t.Cleanup(func() {
		p.clean()
		stop()
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a page: %v", err)
	}
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatalf("listen to the page: %v", err)
	}
	p.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{})
		return err
	})
	p.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
		return err
	})
	return p
}

func (p *tab) call(do func(context.Context) error) {
	p.Helper()
	if err := do(p.ctx); err != nil {
		p.Fatal(err)
	}
}

// hear records what no page may do.
func (p *tab) hear(ev any) {
	switch ev := ev.(type) {
	case *cdplog.EventEntryAdded:
		if ev.Entry.Level == "error" || strings.Contains(ev.Entry.Text, "Content Security Policy") {
			p.note("log: " + ev.Entry.Text + " " + ev.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" || ev.Type == "assert" {
			var b strings.Builder
			for _, arg := range ev.Args {
				fmt.Fprintf(&b, " %s%s", arg.Value, arg.Description)
			}
			p.note("console:" + b.String())
		}
	case *runtime.EventExceptionThrown:
		text := ev.ExceptionDetails.Text
		if x := ev.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description + string(x.Value)
		}
		p.note("exception: " + text)
	case *network.EventRequestWillBeSent:
		if u := ev.Request.URL; !strings.HasPrefix(u, p.base+"/") && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "file:") {
			p.note("foreign request: " + u)
		}
	case *page.EventJavascriptDialogOpening:
		p.note("dialog: " + ev.Message)
	}
}

func (p *tab) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.expected {
		if strings.Contains(what, part) {
			return
		}
	}
	p.bad = append(p.bad, what)
}

// expect accepts messages that the test itself provokes, such as those of a server that is
// down.
func (p *tab) expect(parts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, parts...)
}

// clean fails the test if the page did anything that it must not do.
func (p *tab) clean() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, what := range p.bad {
		p.Errorf("the page must not do this: %s", what)
	}
	p.bad = nil
}

// goToFile opens a file of this machine.
func (p *tab) goToFile(file string) {
	p.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate("file://"+file)); err != nil {
		p.Fatalf("open %s: %v", file, err)
	}
}

// signIn opens the file that `stint open` writes, which posts its one-time link.
func (p *tab) signIn(file string) {
	p.Helper()
	p.goToFile(file)
	p.until(`location.href.startsWith("http") && document.querySelector("h1") !== null && location.pathname === "/"`)
}

func (p *tab) goTo(path string) {
	p.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(p.base+path)); err != nil {
		p.Fatalf("go to %s: %v", path, err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

// until waits until a condition holds in the page, even across a navigation. It polls from
// outside, since a page without scripts has no timers. The bound is not a pace: it only ends a
// test that would wait for ever.
func (p *tab) until(condition string) {
	p.Helper()
	again := time.NewTicker(40 * time.Millisecond)
	defer again.Stop()
	deadline := time.Now().Add(patience)
	for {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](fmt.Sprintf(`(() => { try { return !!(%s) } catch { return false } })()`, condition)))
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 1500)`))
			p.Fatalf("this never came true: %s (%v)\n%s", condition, err, text)
		}
		<-again.C
	}
}

// fill types into a field by its name.
func (p *tab) fill(name, text string) {
	p.Helper()
	sel := fmt.Sprintf(`main [name=%q]`, name)
	p.until(fmt.Sprintf(`document.querySelector(%q)`, sel))
	eval[bool](p, fmt.Sprintf(`(e => { e.focus(); e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); return true })(document.querySelector(%q))`, text, sel))
}

// submit sends the form that a field is in, through its main button.
func (p *tab) submit(form string) {
	p.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q)`, form))
	eval[bool](p, fmt.Sprintf(`(f => { f.requestSubmit(); return true })(document.querySelector(%q))`, form))
}

// says waits until the page's main part has a text.
func (p *tab) says(text string) {
	p.Helper()
	p.until(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, text))
}

func (p *tab) size(width, height int64) {
	p.Helper()
	if err := chromedp.Do(p.ctx, chromedp.EmulateViewport(width, height)); err != nil {
		p.Fatal(err)
	}
}

// theme makes the system's theme light or dark.
func (p *tab) theme(name string) {
	p.Helper()
	p.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	})
}

// scripts switches the page's own scripts on or off.
func (p *tab) scripts(on bool) {
	p.Helper()
	p.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	})
}

// shoot saves a picture of the page as it is on the screen.
func (p *tab) shoot(file string) {
	p.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Fatalf("take a picture: %v", err)
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		p.Fatal(err)
	}
}
