package server_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/docs"
	"stint/server"
	"stint/server/servertest"
)

const publicHost = "stint.example.com"

// behind is a fixture as the guide describes: the public URL, one trusted proxy.
func behind(t *testing.T, home string) *fixture {
	t.Helper()
	d := newFixture(t, servertest.Options{Server: func(o *server.Options) {
		o.Web, o.Public = page(), must(server.ParsePublic(home, nil, []string{"127.0.0.1"}))
	}})
	d.named()
	return d
}

// guide is a block of docs/proxy.md, the one after a line, with the test's own paths filled
// in.
func guide(t *testing.T, after string, places ...string) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(must(docs.Files.ReadFile("proxy.md"))), "\n"+after+":\n\n")
	if !ok {
		t.Fatalf("the guide has nothing about %s", after)
	}
	var block strings.Builder
	for line := range strings.Lines(rest) {
		text, indented := strings.CutPrefix(line, "    ")
		if !indented && strings.TrimSpace(line) != "" {
			break
		}
		block.WriteString(text)
	}
	text := block.String()
	for i := 0; i < len(places); i += 2 {
		if strings.Count(text, places[i]) != 1 {
			t.Fatalf("the guide says %q %d times: %s", places[i], strings.Count(text, places[i]), text)
		}
		text = strings.Replace(text, places[i], places[i+1], 1)
	}
	return text
}

// certificate writes one for a public host and returns the pool that trusts it.
func certificate(t *testing.T, dir, host string) *x509.CertPool {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	is := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der := must(x509.CreateCertificate(rand.Reader, is, is, key.Public(), key))
	for name, block := range map[string]*pem.Block{
		"stint.pem": {Type: "CERTIFICATE", Bytes: der}, "stint.key": {Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(must(x509.ParseCertificate(der)))
	return pool
}

// inTheGuide are the proxies of docs/proxy.md: the words that precede them, and their public
// URL.
var inTheGuide = []struct{ program, after, home string }{
	{"nginx", "nginx", "https://" + publicHost},
	{"Caddy", "Caddy", "https://" + publicHost},
	{"nginx", "nginx, below a path", "https://example.com/stint"},
	{"Caddy", "Caddy, below a path", "https://example.com/stint"},
}

// startProxy makes the command that runs a block of the guide at an address.
func startProxy(t *testing.T, program, after, host, dir, at, to string) *exec.Cmd {
	t.Helper()
	if program == "nginx" {
		site := guide(t, after, "127.0.0.1:7717", to, "listen 443 ssl", "listen "+at+" ssl", "/etc/ssl/stint.pem", dir+"/stint.pem", "/etc/ssl/stint.key", dir+"/stint.key")
		conf := "daemon off; master_process off; error_log stderr; pid " + dir + "/pid;\nevents {}\nhttp {\naccess_log off;\n"
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			conf += kind + "_temp_path " + dir + "/" + kind + ";\n"
		}
		file := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(file, []byte(conf+site+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.Command("nginx", "-p", dir, "-c", file)
	}
	_, port, _ := net.SplitHostPort(at)
	site := guide(t, after, "127.0.0.1:7717", to, host+" {", host+":"+port+" {\n    bind 127.0.0.1\n    tls "+dir+"/stint.pem "+dir+"/stint.key")
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte("{\n    admin off\n    auto_https disable_redirects\n}\n"+site), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", file)
}

// The configurations in docs/proxy.md, run by the real nginx and the real Caddy.
func TestGuide_TheProxiesOfTheGuideWork(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	for _, k := range inTheGuide {
		t.Run(k.after, func(t *testing.T) {
			d, dir, host := behind(t, k.home), t.TempDir(), must(url.Parse(k.home)).Host
			trust := certificate(t, dir, host)
			free := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
			at := free.Addr().String()
			free.Close()
			proxy := startProxy(t, k.program, k.after, host, dir, at, d.Addr())
			var said strings.Builder
			proxy.Stdout, proxy.Stderr, proxy.Env = &said, &said, append(os.Environ(), "HOME="+dir)
			if err := proxy.Start(); err != nil {
				t.Fatalf("this test needs %s: %v", k.program, err)
			}
			ended := make(chan struct{})
			go func() { _ = proxy.Wait(); close(ended) }()
			t.Cleanup(func() { // after the answers were closed
				_ = proxy.Process.Kill()
				<-ended
				if t.Failed() {
					t.Log(said.String())
				}
			})
			// By its address, the client isn't on this machine.
			from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return from.DialContext(ctx, "tcp", at) }
			for tries := time.NewTicker(20 * time.Millisecond); ; <-tries.C {
				if c, err := dial(t.Context(), "", ""); err == nil {
					c.Close()
					tries.Stop()
					break
				}
				select {
				case <-ended:
					t.Fatalf("%s ended: %s", k.program, said.String())
				default:
				}
			}
			client := &http.Client{
				Transport:     &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}},
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			}
			t.Cleanup(client.CloseIdleConnections)
			passes(t, d, client, k.home)
		})
	}
}

// passes does through a proxy everything that a proxy can break.
func passes(t *testing.T, d *fixture, client *http.Client, home string) {
	u := must(url.Parse(home))
	origin, base, cookie := u.Scheme+"://"+u.Host, u.Path, ""
	send := func(method, path, body string, more ...string) *http.Response {
		t.Helper()
		r := must(http.NewRequestWithContext(t.Context(), method, home+path, strings.NewReader(body)))
		r.Header.Set("Origin", origin)
		r.Header.Set("X-Forwarded-For", "203.0.113.9") // written by the client itself
		r.Header.Set("X-Forwarded-Host", "evil.test")
		r.Header.Set("Cookie", cookie)
		for i := 0; i < len(more); i += 2 {
			r.Header.Set(more[i], more[i+1])
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	resp := send("POST", "/signin", url.Values{"login": {"ann"}, "password": {password}}.Encode(), "Content-Type", formType)
	set := resp.Header.Get("Set-Cookie")
	if resp.StatusCode != 303 || resp.Header.Get("Location") != base+"/" || !strings.HasPrefix(set, "__Host-stint_session=") || !strings.Contains(set, "; Secure") {
		t.Fatalf("signing in answered %d to %q with %q", resp.StatusCode, resp.Header.Get("Location"), set)
	}
	cookie, _, _ = strings.Cut(set, ";")
	signIns := servertest.Must[api.List[api.SignIn]](d.Server, 200, "GET", "/api/v1/account/sign-ins", nil).Items
	if signIns[0].Address != "127.0.0.2" {
		t.Errorf("the person's address is %s", signIns[0].Address)
	}
	stream := send("GET", servertest.Base+"/events", "", "Accept", "text/event-stream")
	if stream.StatusCode != 200 {
		t.Fatalf("the stream answered %d", stream.StatusCode)
	}
	if resp := send("POST", servertest.Base+"/agents/tidy/sessions", `{}`, "Content-Type", "application/json"); resp.StatusCode != 201 {
		t.Errorf("a page's write answered %d", resp.StatusCode)
	}
	arrived := make(chan bool, 1)
	go func() {
		for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
			if strings.Contains(lines.Text(), "session_created") {
				arrived <- true
				return
			}
		}
		arrived <- false
	}()
	select {
	case ok := <-arrived:
		if !ok {
			t.Error("the stream ended")
		}
	case <-time.After(5 * time.Second):
		t.Error("the proxy holds the stream back")
	}
	if resp := send("POST", servertest.Base+"/agents/tidy/sessions", `{}`, "Content-Type", "application/json", "Origin", "https://evil.test"); resp.StatusCode != 403 {
		t.Errorf("another site's write answered %d", resp.StatusCode)
	}
	link := servertest.Must[api.Invitation](d.Server, 201, "POST", "invitations", m{"role": "viewer"}).Link
	if !strings.HasPrefix(link, home+"/invitation#") {
		t.Errorf("an invitation leads to %s", link)
	}
	if base == "" {
		return
	}
	for path, ours := range map[string]bool{
		base: true, base + "/sessions": true, "/.well-known/oauth-authorization-server" + base: true, "/.well-known/oauth-protected-resource" + base: true, "/sessions": false, base + "less": false,
	} {
		r := must(http.NewRequestWithContext(t.Context(), "GET", origin+path, nil))
		r.Header.Set("Cookie", cookie)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if answered := resp.Header.Get("Stint-Request-Id") != ""; answered != ours || ours && resp.StatusCode != 200 {
			t.Errorf("%s answered %d, by Stint: %v", path, resp.StatusCode, answered)
		}
	}
}
