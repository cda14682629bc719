package hub

import "github.com/duet-rpc/duet-rpc/internal/changereview"

// Review has people accept or revert what runs have changed in files.
func (h *Hub) Review() *changereview.Review { return h.review }
