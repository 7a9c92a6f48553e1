/** A column whose values are sealed with the master key. Names are SQL identifiers. */
export type SealedColumn = {
  /** Label in the progress of a rotation. */
  name: string;
  table: string;
  column: string;
  id: string;
  idType: 'bigint' | 'bytea' | 'text' | 'uuid';
  purpose: string;
  getContext: (id: unknown) => string;
};
