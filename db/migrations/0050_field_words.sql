-- Tables by the field's words: attempts at a secret, and sign-ins with an OpenID Connect provider that are under way.

-- +goose Up
ALTER TABLE tries RENAME TO attempts;
ALTER TABLE detours RENAME TO oidc_sign_ins;

-- +goose Down
