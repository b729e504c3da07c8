package main

import "stint/api"

// spoken is an item of a conversation as lines of text. The output of a command stays
// unchanged, and so does everything for those who want every byte or JSON.
func (p *printer) spoken(item api.Item) api.Item {
	if item.Stream != "" || p.out.keep == keepAll || p.c.flags.json {
		return item
	}
	item.Text = item.Transcript()
	item.Kind = api.ItemText // from here on it is text
	return item
}
