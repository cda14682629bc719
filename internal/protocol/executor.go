package protocol

type ProvideSecretParams struct {
	RequestID string `json:"request_id" doc:"The request_id of the event secret.requested."`
	Service   string `json:"service,omitempty" doc:"The service that the secret is for."`
	Secret    string `json:"secret" doc:"The secret. Empty: there is none."`
}

func (p ProvideSecretParams) Check() error { return NotEmpty("request_id", p.RequestID) }
