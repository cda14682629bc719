package hub

import "github.com/duet-rpc/duet-rpc/internal/store/health"

// stored makes an error of the store one for users.
func stored(err error) error { return health.Explain(err) }

var errClosing = health.ErrClosing
