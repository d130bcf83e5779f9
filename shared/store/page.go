package store

import "github.com/jackc/pgx/v5"

// PageBytes bounds what one answer tells, which is in memory several times while it is encoded.
const PageBytes = 2 << 20

// Page returns the first rows that are no larger than PageBytes together, the first however large it is; cut says that
// there are more. It closes the rows.
func Page[T any](rows pgx.Rows, read pgx.RowToFunc[T], size func(T) int) (list []T, cut bool, err error) {
	defer rows.Close()
	list = []T{} // none is an empty list
	for sum := 0; !cut && rows.Next(); {
		one, err := read(rows)
		if err != nil {
			return nil, false, err
		}
		sum += size(one)
		if cut = sum > PageBytes && len(list) > 0; !cut {
			list = append(list, one)
		}
	}
	rows.Close()
	return list, cut, rows.Err()
}
