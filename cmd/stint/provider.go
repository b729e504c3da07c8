package main

import (
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"stint/api"
	"stint/server/provider"
)

// providerFlags name the external provider through which people may sign in.
type providerFlags struct {
	issuer, client, secretFile, name string

	viewers []string
	inside  bool
}

func (f *providerFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.issuer, "oidc-issuer", "", "let people sign in through the OpenID Connect provider of\nthis `URL` (STINT_OIDC_ISSUER)")
	flags.StringVar(&f.client, "oidc-client-id", "", "the client `ID` that the provider gave\n(STINT_OIDC_CLIENT_ID)")
	flags.StringVar(&f.secretFile, "oidc-client-secret-file", "", "a `FILE` with the client secret; none for a public client\n(STINT_OIDC_CLIENT_SECRET_FILE)")
	flags.StringVar(&f.name, "oidc-name", "", "what people call the provider, a `NAME` for the button\n(STINT_OIDC_NAME; else the issuer's host)")
	flags.StringSliceVar(&f.viewers, "oidc-viewers", nil, "make whoever has a verified address of this `DOMAIN` a viewer\nof the default workspace; repeat for more (STINT_OIDC_VIEWERS)")
	flags.BoolVar(&f.inside, "oidc-inside", false, "let the provider be on this machine or in its networks,\nwithout https (STINT_OIDC_INSIDE)")
}

// provider is the external provider from the flags or the environment, and the domains whose
// people become viewers; the zero value when none is named. It also sets the flags from the
// environment.
func (c *cli) provider(f *providerFlags) (out provider.Config, viewers []string, err error) {
	const what, next = "cannot start the server", "stint serve --help"
	for _, v := range []struct {
		flag *string
		env  string
	}{
		{&f.issuer, "STINT_OIDC_ISSUER"},
		{&f.client, "STINT_OIDC_CLIENT_ID"},
		{&f.secretFile, "STINT_OIDC_CLIENT_SECRET_FILE"},
		{&f.name, "STINT_OIDC_NAME"},
	} {
		if *v.flag == "" {
			*v.flag = c.env(v.env)
		}
	}
	if text := c.env("STINT_OIDC_VIEWERS"); len(f.viewers) == 0 && text != "" {
		f.viewers = strings.Split(text, ",")
	}
	if f.inside, err = c.isOn(f.inside, "STINT_OIDC_INSIDE"); err != nil {
		return out, nil, err
	}
	if f.issuer == "" {
		if f.client != "" || f.secretFile != "" || f.name != "" || len(f.viewers) > 0 || f.inside {
			return out, nil, usage(what, "the provider's issuer is missing: --oidc-issuer", next)
		}
		return out, nil, nil
	}
	for _, d := range f.viewers {
		if d == "" || strings.ContainsAny(d, "@*/ ") {
			return out, nil, usage(what, strconv.Quote(d)+" is no domain: --oidc-viewers", next)
		}
	}
	out = provider.Config{Issuer: f.issuer, ClientID: f.client, Name: f.name, Inside: f.inside}
	if f.secretFile != "" {
		text, err := os.ReadFile(f.secretFile)
		if err != nil {
			return out, nil, usage(what, "the client secret can't be read: "+api.Plain(err), next)
		}
		if out.Secret = strings.TrimSpace(string(text)); out.Secret == "" {
			return out, nil, usage(what, "the file "+f.secretFile+" has no client secret in it", next)
		}
	}
	return out, f.viewers, nil
}
