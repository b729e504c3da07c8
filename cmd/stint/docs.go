package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/docs"
)

// document is one of the documents in the program, the same that the dashboard's help shows.
type document struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Text  string `json:"text,omitzero"` // Markdown
}

// documents are all of them, by name.
func documents() ([]document, error) {
	pages, err := docs.All()
	all := make([]document, len(pages))
	for i, d := range pages {
		all[i] = document{Name: d.Name, Title: d.Title, Text: string(d.Text)}
	}
	return all, err
}

func (c *cli) docsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "docs [DOCUMENT]", Short: "Read the documents of this version, without a network",
		Long:    "Lists the documents, or prints one as Markdown. The dashboard has the same under Help.",
		Example: "stint docs\nstint docs sessions | less",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			all, _ := documents()
			words := make([]string, len(all))
			for i, d := range all {
				words[i] = d.Name + "\t" + d.Title
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := documents()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				for i := range all {
					all[i].Text = ""
				}
				return c.showDocuments(all)
			}
			i := slices.IndexFunc(all, func(d document) bool { return d.Name == strings.TrimSuffix(args[0], ".md") })
			if i < 0 {
				return &problem{code: exitNotFound, what: "cannot show the document " + args[0], why: "there is none of this name", next: "stint docs"}
			}
			if c.flags.json {
				return c.document(all[i])
			}
			_, err = c.out.Write([]byte(all[i].Text))
			return err
		},
	}
}

func (c *cli) showDocuments(all []document) error {
	l := listing[document]{
		head: []string{"DOCUMENT", "TITLE"}, flex: 1,
		row: func(d document) []string { return []string{d.Name, d.Title} },
	}
	return l.show(c, api.List[document]{Items: all})
}
