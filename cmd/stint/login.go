package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"stint/api"
	"stint/server"
	"stint/web"
)

// cliClient is the client id under which every coordinator registers the command line.
const cliClient = "stint-cli"

// loginPatience is how long a person may take to answer in the browser.
const loginPatience = 10 * time.Minute

type loginFlags struct {
	url, name string
	device    bool
}

func (c *cli) loginCommand() *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Sign in to a server through a browser",
		Long: "Signs you in to a server: its page in your browser asks you for a yes. Where there\n" +
			"is no browser, or with --device, it shows a code to type into a browser anywhere.\n" +
			"From then on the commands and stint worker run act as you on that server, until\n" +
			"stint logout. The server on your own data directory needs no signing in.",
		Example: "stint login --url https://stint.example.com\nstint login --url https://stint.example.com --device",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.login(cmd.Context(), f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&f.url, "url", "", "the server's `URL` (STINT_URL; else that of the context in use)")
	cmd.Flags().StringVar(&f.name, "name", "", "the `NAME` of the context that it becomes (the server's host)")
	cmd.Flags().BoolVar(&f.device, "device", false, "show a code to type into a browser on any machine")
	return cmd
}

func (c *cli) login(ctx context.Context, f loginFlags) error {
	what := "cannot sign in"
	at, err := c.loginURL(what, f)
	if err != nil {
		return err
	}
	client, err := api.NewClient(api.ClientConfig{URL: at, Agent: c.agent()})
	if err != nil {
		return usage(what, err.Error(), "stint login --url https://stint.example.com")
	}
	if f.name == "" {
		f.name = hostOf(client.URL())
	}
	if f.name == localContext {
		return usage(what, "local is the name of the server on your own data directory", "stint login --name NAME")
	}
	home, err := api.NewClient(api.ClientConfig{URL: server.ForBrowsers(client.URL()), Agent: c.agent()})
	if err != nil {
		return err
	}
	server, err := home.AuthServer(ctx)
	if err != nil {
		return explain(what, err, "stint login --url URL")
	}
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	var token *oauth2.Token
	if opener := c.opener(); opener == "" || f.device {
		token, err = c.loginByCode(oauthContext(ctx, home, c.agent()), server)
	} else {
		token, err = c.loginByBrowser(oauthContext(ctx, home, c.agent()), server, opener)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = &problem{code: exitTimeout, what: what, why: "nobody answered within 10 minutes", next: "stint login"}
	}
	if err != nil {
		return explain(what, err, "stint login --device")
	}
	return c.keepLogin(ctx, what, f.name, client, server.Issuer, token)
}

// loginURL is the server that the flag, the environment or the context in use
// names, else the one that runs on the data directory.
func (c *cli) loginURL(what string, f loginFlags) (string, error) {
	if f.url != "" {
		return f.url, nil
	}
	if at := c.env("STINT_URL"); at != "" {
		return at, nil
	}
	p, err := c.target(what)
	return p.url, err
}

func hostOf(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return at
	}
	return u.Host
}

func (c *cli) agent() string { return "stint-cli/" + builtFrom().Version }

func oauthConfig(server api.AuthServer) *oauth2.Config {
	return &oauth2.Config{ClientID: cliClient, Endpoint: oauth2.Endpoint{
		AuthURL: server.AuthorizationEndpoint, TokenURL: server.TokenEndpoint, DeviceAuthURL: server.DeviceEndpoint,
		AuthStyle: oauth2.AuthStyleInParams,
	}}
}

// oauthContext makes golang.org/x/oauth2 call through a client of ours, under the command
// line's name.
func oauthContext(ctx context.Context, client *api.Client, agent string) context.Context {
	h := *client.HTTP()
	h.Transport, h.Timeout = named{agent, h.Transport}, 30*time.Second
	return context.WithValue(ctx, oauth2.HTTPClient, &h)
}

type named struct {
	agent string
	next  http.RoundTripper
}

// RoundTrip is part of http.RoundTripper.
func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", n.agent)
	return n.next.RoundTrip(r)
}

// loginByCode shows a code and waits until somebody typed it.
func (c *cli) loginByCode(ctx context.Context, server api.AuthServer) (*oauth2.Token, error) {
	config := oauthConfig(server)
	given, err := config.DeviceAuth(ctx)
	if err != nil {
		return nil, tokenFailure(err)
	}
	c.hint("Open this page in a browser where you are signed in, or sign in there:\n  %s\nand type this code, within 10 minutes:\n  %s", given.VerificationURI, given.UserCode)
	token, err := patiently(ctx, loginPatience, c.waits, func() (*oauth2.Token, error) { return config.DeviceAccessToken(ctx, given) })
	var refused *oauth2.RetrieveError
	switch {
	case err == nil:
		return token, nil
	case errors.As(err, &refused) && refused.ErrorCode == "access_denied":
		return nil, errLoginDenied
	case errors.As(err, &refused) && refused.ErrorCode == "expired_token":
		return nil, context.DeadlineExceeded
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !given.Expiry.IsZero() && !c.now().Before(given.Expiry):
		return nil, context.DeadlineExceeded
	}
	return nil, tokenFailure(err)
}

var errLoginDenied = &problem{code: exitNotAllowed, what: "cannot sign in", why: "the answer in the browser was no"}

// loginByBrowser opens the server's page and takes the answer on a port of this machine (RFC
// 8252).
func (c *cli) loginByBrowser(ctx context.Context, server api.AuthServer, opener string) (*oauth2.Token, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the browser's answer: %w", err)
	}
	config := oauthConfig(server)
	config.RedirectURL = "http://" + ln.Addr().String() + "/callback"
	verifier, state := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	answers := make(chan url.Values, 1)
	hs := &http.Server{Handler: callback{state: state, issuer: server.Issuer, answers: answers}, ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = hs.Serve(ln) }) // its only error is that it was shut down
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = hs.Shutdown(ending) // so that the browser gets its page
		serving.Wait()
	}()
	page := config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", server.Issuer))
	if err := show(opener, page); err != nil {
		c.hint("%s", c.errLook.quiet(api.Plain(err)))
	}
	c.hint("Say yes in your browser. If no page appears, open this one:\n  %s", page)
	select {
	case got := <-answers:
		if word := got.Get("error"); word != "" {
			if word == "access_denied" {
				return nil, errLoginDenied
			}
			return nil, fmt.Errorf("the server refuses: %s: %s", word, got.Get("error_description"))
		}
		token, err := patiently(ctx, time.Minute, c.waits, func() (*oauth2.Token, error) { // as long as a code is valid
			return config.Exchange(ctx, got.Get("code"), oauth2.VerifierOption(verifier), oauth2.SetAuthURLParam("resource", server.Issuer))
		})
		if err != nil {
			return nil, tokenFailure(err)
		}
		return token, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// callback accepts the one answer that carries the state and the name of the server that was
// asked; any other caller learns nothing and changes nothing.
type callback struct {
	state, issuer string
	answers       chan url.Values
}

// ServeHTTP is part of http.Handler.
func (b callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	got := r.URL.Query()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", web.DataPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet || r.URL.Path != "/callback" || got.Get("state") != b.state || got.Get("iss") != b.issuer {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	select {
	case b.answers <- got:
	default: // there was an answer already
	}
	words := "You are signed in. Go back to the terminal; you can close this page."
	if got.Get("error") != "" {
		words = "You are not signed in. Go back to the terminal; you can close this page."
	}
	fmt.Fprintf(w, "<!doctype html><html lang=\"en\"><meta name=\"color-scheme\" content=\"light dark\"><title>stint</title><p>%s</p></html>\n", html.EscapeString(words))
}

// keepLogin stores the sign-in and makes its context the one in use.
func (c *cli) keepLogin(ctx context.Context, what, name string, client *api.Client, issuer string, token *oauth2.Token) error {
	me, err := api.NewClient(api.ClientConfig{URL: client.URL(), Token: token.AccessToken, Agent: c.agent()})
	if err != nil {
		return err
	}
	who, err := me.Whoami(ctx)
	if err != nil {
		return explain(what, err, "stint login")
	}
	var before credential
	err = newVault().change(ctx, func(stored *credentials) error {
		before = stored.Contexts[name]
		stored.Contexts[name] = credential{URL: client.URL(), Issuer: issuer, User: who.Name}.with(token, c.now())
		stored.Current = name
		return nil
	})
	if err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	if before.Refresh != "" && before.Refresh != token.RefreshToken {
		_ = c.endLogin(ctx, before) // unused, it ends by itself
	}
	return c.done(who, who.UserID.String(), "Signed in to %s as %s. Commands act there now; stint context use local goes back.", client.URL(), plain(who.Name))
}

// endLogin ends a sign-in at its server.
func (c *cli) endLogin(ctx context.Context, a credential) error {
	client, err := api.NewClient(api.ClientConfig{URL: a.Issuer, Agent: c.agent()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return client.Revoke(ctx, cliClient, a.Refresh)
}
