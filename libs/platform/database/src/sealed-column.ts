/** Where values stand that the master key has sealed. Names are SQL identifiers. */
export type SealedColumn = {
  /** For people who watch a rotation. */
  name: string;
  table: string;
  column: string;
  id: string;
  idType: 'bigint' | 'bytea' | 'text';
  purpose: string;
  contextOf: (id: unknown) => string;
};
