package engine

import (
	"fmt"
	"slices"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// What an item takes besides its text, roughly: a million empty lines aren't free.
const itemOverhead = 64

const dropAtOnce = 1000 // items

// amount is how much of a session's output is in the store. It is kept up to a limit, half of
// it the beginning and half of it the end; what lies between is dropped, and one item in its
// place says how much that was (contract 10.11). Questions, answers, messages and the ends of
// turns are never dropped.
type amount struct {
	queries.Output
	most int64 // bytes
}

func (e *Engine) outputOf(tx *db.Tx, session api.SessionID) (*amount, error) {
	k := &amount{most: e.cfg.MaxOutput}
	var err error
	if k.Output, err = tx.Output(tx.Context(), session); !db.None(err) {
		return k, err
	}
	sum, err := tx.SumOfItems(tx.Context(), session)
	k.Output = queries.Output{SessionID: session, HeadBytes: sum.Bytes + sum.N*itemOverhead}
	return k, err
}

// add counts an item that was appended.
func (k *amount) add(seq int64, kind api.ItemKind, bytes int) {
	size := int64(bytes) + itemOverhead
	if k.TailFrom == 0 && (k.HeadBytes+size <= k.most/2 || !droppable(kind)) {
		k.HeadBytes += size
		return
	}
	if k.TailFrom == 0 {
		k.TailFrom = seq
	}
	k.TailBytes += size
}

// droppable reports whether an item may be dropped. The queries say the same.
func droppable(kind api.ItemKind) bool {
	return slices.Contains([]api.ItemKind{api.ItemText, api.ItemThinking, api.ItemToolCall, api.ItemToolResult, api.ItemStatus}, kind)
}

// keepOutput drops what is too much, and records what is there. last is the newest item, which
// stays.
func (e *Engine) keepOutput(tx *db.Tx, k *amount, last int64) error {
	if k.TailBytes > k.most/2 {
		if err := e.dropOutput(tx, k, last); err != nil {
			return fmt.Errorf("drop output of session %s: %w", k.SessionID, err)
		}
	}
	if err := tx.PutOutput(tx.Context(), queries.PutOutputParams(k.Output)); err != nil {
		return fmt.Errorf("write down how much output session %s has: %w", k.SessionID, err)
	}
	return nil
}

// dropOutput drops slightly more than it has to, so that it isn't needed each time.
func (e *Engine) dropOutput(tx *db.Tx, k *amount, last int64) error {
	upto, goal := int64(0), k.most/2-k.most/16
	for after, full := k.TailFrom, true; full && k.TailBytes > goal; {
		some, err := tx.DroppableItems(tx.Context(), queries.DroppableItemsParams{SessionID: k.SessionID, After: after, Before: last, N: dropAtOnce})
		if err != nil {
			return err
		}
		for _, item := range some {
			if k.TailBytes <= goal {
				break
			}
			if item.Seq > k.TailFrom || k.DroppedBytes == 0 { // not the item that marks the gap
				k.TailBytes -= item.Bytes + itemOverhead
				k.DroppedBytes += item.Bytes
			}
			upto, after = item.Seq, item.Seq+1
		}
		full = len(some) == dropAtOnce
	}
	if upto == 0 {
		return nil
	}
	text := fmt.Sprintf("\n… %s of output left out here: Stint keeps %s of a session, its beginning and its end (STINT_SESSION_OUTPUT_MIB) …\n", sizeWords(k.DroppedBytes), sizeWords(k.most))
	if err := db.One(tx.MarkGap(tx.Context(), queries.MarkGapParams{SessionID: k.SessionID, Seq: k.TailFrom, Text: text})); err != nil {
		return err
	}
	return tx.DropItems(tx.Context(), queries.DropItemsParams{SessionID: k.SessionID, After: k.TailFrom + 1, Upto: upto})
}
