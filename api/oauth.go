package api

// AuthServer tells programs how to sign people in here (RFC 8414).
type AuthServer struct {
	Issuer                 string   `json:"issuer"`
	AuthorizationEndpoint  string   `json:"authorization_endpoint"`
	TokenEndpoint          string   `json:"token_endpoint"`
	DeviceEndpoint         string   `json:"device_authorization_endpoint"`
	RevocationEndpoint     string   `json:"revocation_endpoint"`
	ResponseTypes          []string `json:"response_types_supported"`
	ResponseModes          []string `json:"response_modes_supported"`
	GrantTypes             []string `json:"grant_types_supported"`
	Scopes                 []string `json:"scopes_supported"`
	TokenAuthMethods       []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods  []string `json:"revocation_endpoint_auth_methods_supported"`
	ChallengeMethods       []string `json:"code_challenge_methods_supported"`
	IssuerInAnswers        bool     `json:"authorization_response_iss_parameter_supported"`
	ClientMetadataDocument bool     `json:"client_id_metadata_document_supported"`
	RegistrationEndpoint   string   `json:"registration_endpoint,omitzero"` // empty = programs can't register themselves
}

// ProtectedResource tells programs who signs people in for this server (RFC 9728).
type ProtectedResource struct {
	Resource      string   `json:"resource"`
	Name          string   `json:"resource_name"`
	AuthServers   []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	BearerMethods []string `json:"bearer_methods_supported"`
}

// OAuthTokens are what a program is given to act for a person (RFC 6749).
type OAuthTokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
}

// OAuthRegistration answers a program that registered itself (RFC 7591). Fields of the request
// that Stint doesn't use are left out.
type OAuthRegistration struct {
	ClientID      string   `json:"client_id"`
	IssuedAt      int64    `json:"client_id_issued_at"` // Unix seconds
	Name          string   `json:"client_name"`
	RedirectURIs  []string `json:"redirect_uris"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	Scope         string   `json:"scope"`
}

// RegisteredProgram is a program that registered itself.
type RegisteredProgram struct {
	ID           ClientID `json:"id"`   // which is its client id
	Name         string   `json:"name"` // of its own choosing
	RedirectURIs []string `json:"redirectUris"`
	Address      string   `json:"address,omitzero"` // where it registered from
	RegisteredAt Time     `json:"registeredAt"`
	LastUsedAt   Time     `json:"lastUsedAt,omitzero"`
	ExpiresAt    Time     `json:"expiresAt"` // unless somebody signs it in before
	SignIns      int64    `json:"signIns"`   // that are valid, of all people
}

// OAuthDevice answers a program without a browser (RFC 8628).
type OAuthDevice struct {
	DeviceCode      string `json:"device_code"`
	UserCode        string `json:"user_code"`
	VerificationURI string `json:"verification_uri"`
	ExpiresIn       int64  `json:"expires_in"` // seconds
	Interval        int64  `json:"interval"`   // seconds
}

// OAuthRefusal is a refusal in the words of OAuth.
type OAuthRefusal struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// The grants that the token endpoint knows, and the one scope: to act as the
// person who signed in.
const (
	GrantCode    = "authorization_code"
	GrantRefresh = "refresh_token"
	GrantDevice  = "urn:ietf:params:oauth:grant-type:device_code"
	ScopeUser    = "user"
)
