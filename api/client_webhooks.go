package api

import (
	"context"
	"net/http"
)

// Webhooks lists a page of webhooks, newest first.
func (c *Client) Webhooks(ctx context.Context, p Page) (List[Webhook], error) {
	return get[List[Webhook]](ctx, c, "webhooks", p.query())
}

// Webhook shows one.
func (c *Client) Webhook(ctx context.Context, id WebhookID) (Webhook, error) {
	return get[Webhook](ctx, c, path("webhooks", id.String()), nil)
}

// CreateWebhook creates one. Only the answer has its secret. in is a [WebhookInput] or any
// value that encodes as part of one.
func (c *Client) CreateWebhook(ctx context.Context, in any) (Webhook, error) {
	return post[Webhook](ctx, c, "webhooks", in)
}

// EditWebhook merges in into a webhook.
func (c *Client) EditWebhook(ctx context.Context, id WebhookID, in any) (Webhook, error) {
	var out Webhook
	_, err := c.do(ctx, call{method: http.MethodPatch, path: path("webhooks", id.String()), body: in}, &out)
	return out, err
}

// DeleteWebhook removes one; what waits is not delivered.
func (c *Client) DeleteWebhook(ctx context.Context, id WebhookID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("webhooks", id.String())}, nil)
	return err
}

// RotateWebhook gives a webhook a new secret; for a day the old one signs too.
func (c *Client) RotateWebhook(ctx context.Context, id WebhookID) (Webhook, error) {
	return post[Webhook](ctx, c, path("webhooks", id.String(), "rotate"), nil)
}

// TestWebhook sends a message of type stint.test.
func (c *Client) TestWebhook(ctx context.Context, id WebhookID) (Delivery, error) {
	return post[Delivery](ctx, c, path("webhooks", id.String(), "test"), nil)
}

// Deliveries lists a page of a webhook's messages, newest first.
func (c *Client) Deliveries(ctx context.Context, id WebhookID, p Page) (List[Delivery], error) {
	return get[List[Delivery]](ctx, c, path("webhooks", id.String(), "deliveries"), p.query())
}

// Redeliver sends a message once more.
func (c *Client) Redeliver(ctx context.Context, id WebhookID, delivery DeliveryID) (Delivery, error) {
	return post[Delivery](ctx, c, path("webhooks", id.String(), "deliveries", delivery.String(), "redeliver"), nil)
}

// TriggerURLs lists a page of an agent's trigger URLs.
func (c *Client) TriggerURLs(ctx context.Context, agent string, p Page) (List[TriggerURL], error) {
	return get[List[TriggerURL]](ctx, c, path("agents", agent, "trigger-urls"), p.query())
}

// OpenTriggerURL creates an address by which other programs start an agent. Only the answer
// has address and secret.
func (c *Client) OpenTriggerURL(ctx context.Context, agent string, in TriggerURLInput) (TriggerURL, error) {
	return post[TriggerURL](ctx, c, path("agents", agent, "trigger-urls"), in)
}

// CloseTriggerURL makes an address useless.
func (c *Client) CloseTriggerURL(ctx context.Context, agent string, id TriggerID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("agents", agent, "trigger-urls", id.String())}, nil)
	return err
}
