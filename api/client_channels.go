package api

import (
	"context"
	"net/http"
)

// Channels lists a page of the caller's channels and of the workspace's, newest first.
func (c *Client) Channels(ctx context.Context, p Page) (List[Channel], error) {
	return get[List[Channel]](ctx, c, "channels", p.query())
}

// Channel shows one, without its address.
func (c *Client) Channel(ctx context.Context, id ChannelID) (Channel, error) {
	return get[Channel](ctx, c, path("channels", id.String()), nil)
}

// CreateChannel creates one. in is a [ChannelInput] or any value that encodes as part of one.
func (c *Client) CreateChannel(ctx context.Context, in any) (Channel, error) {
	return post[Channel](ctx, c, "channels", in)
}

// EditChannel merges in into a channel.
func (c *Client) EditChannel(ctx context.Context, id ChannelID, in any) (Channel, error) {
	var out Channel
	_, err := c.do(ctx, call{method: http.MethodPatch, path: path("channels", id.String()), body: in}, &out)
	return out, err
}

// DeleteChannel removes one; what waits is not told.
func (c *Client) DeleteChannel(ctx context.Context, id ChannelID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("channels", id.String())}, nil)
	return err
}

// TestChannel sends a message of type stint.test.
func (c *Client) TestChannel(ctx context.Context, id ChannelID) (ChannelDelivery, error) {
	return post[ChannelDelivery](ctx, c, path("channels", id.String(), "test"), nil)
}

// ChannelDeliveries lists a page of a channel's messages, newest first.
func (c *Client) ChannelDeliveries(ctx context.Context, id ChannelID, p Page) (List[ChannelDelivery], error) {
	return get[List[ChannelDelivery]](ctx, c, path("channels", id.String(), "deliveries"), p.query())
}

// ChannelDelivery shows one message of a channel and what became of it.
func (c *Client) ChannelDelivery(ctx context.Context, id ChannelID, delivery DeliveryID) (ChannelDelivery, error) {
	return get[ChannelDelivery](ctx, c, path("channels", id.String(), "deliveries", delivery.String()), nil)
}
