package store

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// registerIDs makes m encode a uuid.UUID directly. By default pgx treats it as a database/sql value: it formats each id
// as text, fails to send that in binary, and parses it again, which was a sixth of the client's time in a transaction.
func registerIDs(m *pgtype.Map) {
	id := &pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: idCodec{}}
	m.RegisterType(id)
	m.RegisterType(&pgtype.Type{Name: "_uuid", OID: pgtype.UUIDArrayOID, Codec: &pgtype.ArrayCodec{ElementType: id}})
}

type idCodec struct{ pgtype.UUIDCodec }

func (c idCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	switch value.(type) {
	case uuid.UUID, *uuid.UUID:
		if format == pgtype.BinaryFormatCode {
			return idPlan{}
		}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

func (c idCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return idPlan{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

type idPlan struct{}

func (idPlan) Encode(value any, buf []byte) ([]byte, error) {
	switch id := value.(type) {
	case uuid.UUID:
		return append(buf, id[:]...), nil
	case *uuid.UUID:
		if id == nil {
			return nil, nil
		}
		return append(buf, id[:]...), nil
	}
	return nil, fmt.Errorf("%T is no id", value)
}

func (idPlan) Scan(src []byte, target any) error {
	id, ok := target.(*uuid.UUID)
	if !ok {
		return fmt.Errorf("%T is no id", target)
	}
	if len(src) != len(id) {
		return fmt.Errorf("an id has %d bytes, not %d", len(id), len(src))
	}
	copy(id[:], src)
	return nil
}
