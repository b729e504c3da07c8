package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"stint/api"
)

// apiMethods are what “stint api” sends.
var apiMethods = []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete}

// apiFlags are the flags of “stint api”.
type apiFlags struct {
	typed, text, headers []string
	input                string
	paginate             bool
}

func (c *cli) apiCommand() *cobra.Command {
	var f apiFlags
	cmd := &cobra.Command{
		Use: "api METHOD PATH", Short: "Call the REST interface as whom you are signed in", Args: cobra.ExactArgs(2),
		Long: "Calls the REST interface and prints the answer as it came, a refusal too. PATH is\n" +
			"below the workspace, or from the root on if it begins with a slash. Fields become\n" +
			"the JSON body, those of a GET and a DELETE the query. The interface is described\n" +
			"at /api/docs.",
		Example: "stint api GET sessions -F status=error --paginate | jq '.items[].id'\n" +
			"stint api POST tasks -f title='Tidy up' -F 'labels=[\"house\"]'\n" +
			"stint api POST agents/backup/sessions -H 'Idempotency-Key: today'\n" +
			"stint api GET /api/v1/whoami",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return apiMethods, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := f.call(c, strings.ToUpper(args[0]), args[1])
			if err != nil {
				return err
			}
			what := "cannot call " + k.Method + " " + args[1]
			client, err := c.connect(what)
			if err != nil {
				return err
			}
			body, err := client.Raw(cmd.Context(), k)
			if err == nil && f.paginate {
				body, err = restOf(cmd.Context(), client, k, body)
			}
			if len(body) > 0 && (err == nil || api.CodeOf(err) != "") {
				if _, werr := c.out.Write(append(bytes.TrimRight(body, "\n"), '\n')); werr != nil {
					return werr
				}
			}
			return explain(what, err, "the interface is described at /api/docs of the dashboard")
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.typed, "field", "F", nil, "a `NAME=VALUE`, as JSON if VALUE is that, else as text; repeat for more")
	flags.StringArrayVarP(&f.text, "raw-field", "f", nil, "a `NAME=VALUE` that is text, whatever it looks like; repeat for more")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "a `HEADER` to send, such as 'Idempotency-Key: today'; repeat for more")
	flags.StringVar(&f.input, "input", "", "the body, from a `FILE`; - reads stdin")
	flags.BoolVar(&f.paginate, "paginate", false, "gather all pages of a list")
	flags.SortFlags = false
	return cmd
}

// call makes the request that the flags describe.
func (f *apiFlags) call(c *cli, method, path string) (api.RawCall, error) {
	const what, help = "cannot make the call", "stint api --help"
	if !slices.Contains(apiMethods, method) {
		return api.RawCall{}, usage(what, fmt.Sprintf("%q is no METHOD: it is one of %s", method, strings.Join(apiMethods, ", ")), help)
	}
	where, err := url.Parse(path)
	if err != nil || where.IsAbs() || where.Host != "" || path == "" {
		return api.RawCall{}, usage(what, "PATH is a path, such as tasks or /api/v1/whoami: the server is the one that you are signed in to", help)
	}
	query, err := url.ParseQuery(where.RawQuery)
	if err != nil {
		return api.RawCall{}, usage(what, fmt.Sprintf("the query %q can't be read: %s; write NAME=VALUE&NAME=VALUE, or each as -F NAME=VALUE", where.RawQuery, err), help)
	}
	k := api.RawCall{Method: method, Path: where.EscapedPath(), Query: query, Header: http.Header{"Accept": {"application/json, */*;q=0.5"}}}
	inQuery := method == http.MethodGet || method == http.MethodDelete
	switch {
	case f.paginate && method != http.MethodGet:
		return k, usage(what, "--paginate is for lists, which are got by GET", help)
	case f.input != "" && (inQuery || len(f.typed)+len(f.text) > 0):
		return k, usage(what, "--input is the whole body of a POST, PATCH or PUT: it goes with no field", help)
	}
	if err := f.addHeaders(k.Header); err != nil {
		return k, usage(what, err.Error(), help)
	}
	if f.input != "" {
		text, err := c.fileText(f.input)
		if err == nil && !jsontext.Value(text).IsValid() {
			err = fmt.Errorf("%s is no JSON", f.input)
		}
		if err != nil {
			return k, usage(what, api.Plain(err), help)
		}
		k.Body = jsontext.Value(text)
		return k, nil
	}
	fields, err := f.fields()
	if err != nil {
		return k, usage(what, err.Error(), help)
	}
	for name, value := range fields {
		if inQuery {
			k.Query.Set(name, queryText(value))
		}
	}
	if !inQuery && len(fields) > 0 {
		k.Body = fields
	}
	return k, nil
}

// addHeaders adds the headers of the flags to those of a request.
func (f *apiFlags) addHeaders(to http.Header) error {
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)); !ok || name == "" {
			return fmt.Errorf("%q is no header: write NAME: VALUE", line)
		}
		if slices.Contains([]string{"Authorization", "Content-Type", "Content-Length", "Host"}, name) {
			return fmt.Errorf("the header %s is set by the call itself", name)
		}
		to.Set(name, strings.TrimSpace(value))
	}
	return nil
}

// fields are the values of the flags by name, as JSON.
func (f *apiFlags) fields() (map[string]jsontext.Value, error) {
	out := map[string]jsontext.Value{}
	for i, field := range append(slices.Clone(f.typed), f.text...) {
		name, value, ok := strings.Cut(field, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is no field: write NAME=VALUE", field)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("the field %s is there twice: several values are a list, such as -F '%s=[1,2]'", name, name)
		}
		if typed := jsontext.Value(value); i < len(f.typed) && typed.IsValid() {
			out[name] = typed
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("the field %s is not text: %w", name, err)
		}
		out[name] = text
	}
	return out, nil
}

// queryText is a field's value as a query has it.
func queryText(value jsontext.Value) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// rawPage is a page of a list as it came.
type rawPage struct {
	Items      []jsontext.Value `json:"items"`
	NextCursor string           `json:"nextCursor,omitzero"`
}

// restOf gathers the pages after the first; the answer is one list of all. A cursor that comes
// twice would lead round for ever, and is an error.
func restOf(ctx context.Context, client *api.Client, k api.RawCall, first []byte) ([]byte, error) {
	all, seen := rawPage{Items: []jsontext.Value{}}, map[string]bool{k.Query.Get("cursor"): true}
	for body := first; ; {
		var page rawPage
		if err := json.Unmarshal(body, &page); err != nil || page.Items == nil {
			return nil, usage("cannot gather the pages of "+k.Path, "its answer is no list", "leave out --paginate")
		}
		all.Items = append(all.Items, page.Items...)
		if page.NextCursor == "" {
			return json.Marshal(all)
		}
		if seen[page.NextCursor] {
			return nil, &problem{
				code: exitFailed, what: "cannot gather the pages of " + k.Path,
				why: fmt.Sprintf("the server repeats the cursor %q, so the list has no end", page.NextCursor), next: "leave out --paginate",
			}
		}
		seen[page.NextCursor] = true
		k.Query.Set("cursor", page.NextCursor)
		var err error
		if body, err = client.Raw(ctx, k); err != nil {
			return body, err
		}
	}
}
