package web

import "strings"

// Content security policies (contract 8.5). The dashboard's and the server's own pages have
// PagePolicy: nothing from elsewhere, nothing inline. What is no page of ours loads nothing.
const (
	PagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
		"connect-src 'self'; " + ownForms + "; base-uri 'none'; frame-ancestors 'none'"
	DataPolicy = "default-src 'none'; frame-ancestors 'none'"

	ownForms = "form-action 'self'"
)

// PagePolicyTo is PagePolicy for a page whose form's answer redirects to target: browsers apply the
// page's policy to that too.
func PagePolicyTo(target string) string {
	return strings.Replace(PagePolicy, ownForms, ownForms+" "+target, 1)
}
