import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { Localization } from '#translations/translations.js';

/** The member of staff whose counter it is. @property isManager whether they may undo what others did */
export type CounterUser = { id: number; sessionId: number; csrf: string; isManager: boolean };

/** What outcomes are made for. @property path of the store's counter, from the root of the service */
export type CounterVisit = {
  context: CommandContext;
  user: CounterUser;
  path: string;
  localization: Localization;
  /** The label of the link that closes an outcome; empty where a script does it. */
  close: string;
};
