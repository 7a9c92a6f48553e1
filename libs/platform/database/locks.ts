/** Refuses a table in which two locks have the same number. */
type Distinct<Locks> = {
  [Name in keyof Locks]: Locks[Name] extends Locks[Exclude<keyof Locks, Name>]
    ? never
    : Locks[Name];
};

export const defineLocks = <const Locks>(locks: Locks & Distinct<Locks>): Locks => locks;

/**
 * Numbers all advisory locks, those of the schema included: two that share a number wait for each other. A number that
 * occurs twice does not compile, and `locks.spec.ts` finds numbers that are not in this table.
 */
export const LOCKS = defineLocks({
  migration: 727_000,
  fanOut: 727_001,
  partitions: 727_002,
  transparency: 727_003,
  history: 727_004,
  logTimes: 727_005,
  passes: 727_006,
  messages: 727_007,
  geocoding: 727_008,
  caps: 727_012,
  retirement: 727_013,
  erasureAnnouncements: 727_014,
  phoneNumbers: 727_064,
  importRetention: 727_077,
  statistics: 727_078,
  // These four with the number of a process.
  dispatcher: 727_085,
  api: 727_086,
  connectedDispatcher: 727_087,
  connectedApi: 727_088,
  backup: 727_093,
  messageRules: 727_094,
  announcementsPerDay: 727_095,
  messagesPerDay: 727_096,
  importedRowsPerDay: 727_133,
  bounces: 727_134,
});
