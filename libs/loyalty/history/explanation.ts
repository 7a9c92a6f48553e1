import { isMovedByMerge } from '#loyalty/stamping/customer-card.js';
import { getTranslations, type Localization } from '#translations/translations.js';

/** The data of one step of an explanation. */
export type Step = {
  /** The name of the event, as in `stamp.earned`. */
  name: string;
  at: Date;
  stamps: number | null;
  /** The source of the stamps. */
  source: string | null;
  isImport: boolean;
  /** Whether a merge or its undoing moved the stamps. */
  isMerge: boolean;
  reward: string | null;
  location: string | null;
  /** The staff member, or the name of the token or user. */
  person: string | null;
  receipt: string | null;
  /** A note or a reason. */
  note: string | null;
  reverses: Date | null;
  reversed: Date | null;
};

/**
 * Tells whether a merge, or its undoing, moved the stamps.
 * @param event its name, as in `stamp.earned`, and its data; null: the event is lost
 */
export function isMovedInMerge({ name, data }: { name: string; data: object | null }): boolean {
  return (
    (name === 'stamp.earned' || name === 'stamp.removed') &&
    data !== null &&
    isMovedByMerge(data as Parameters<typeof isMovedByMerge>[0])
  );
}

/** Describes what happened in the language of a store, for a person at the counter. */
export class Narrator {
  private readonly localization: Localization;
  private readonly times: Intl.DateTimeFormat;

  /**
   * @param locale BCP 47 tag
   * @param timeZone IANA name
   */
  constructor({ locale, timeZone }: { locale: string; timeZone: string }) {
    this.localization = getTranslations(locale);
    const format = { timeZone, dateStyle: 'medium', timeStyle: 'short' } as const;
    this.times = new Intl.DateTimeFormat(this.localization.locale, format);
  }

  describe(step: Step): string {
    const t = this.localization.t.history;
    const { location, person, receipt, reverses, reversed, note } = step;
    const parts = [
      this.describeEvent(step),
      location && t.at({ location }),
      person && t.by({ who: person }),
      receipt && t.receipt({ number: receipt }),
      reverses && t.reverses({ when: this.times.format(reverses) }),
      reversed && t.reversed({ when: this.times.format(reversed) }),
    ].filter((part) => part !== null);
    const text = `${this.times.format(step.at)}: ${parts.join(', ')}`;
    return note === null ? text : `${text} (${note})`;
  }

  /** Describes all earlier steps as one. */
  describeEarlier(count: number): string {
    return this.localization.t.history.earlier({ count });
  }

  private describeEvent({ name, stamps, source, isImport, isMerge, reward }: Step): string {
    const { history: t, stamps: stampTexts } = this.localization.t;
    const count = Math.abs(stamps ?? 0);
    switch (name) {
      case 'customer_card.created':
        return t.issued;
      case 'stamp.earned':
        if (source === 'welcome_bonus') return t.welcome({ count });
        if (source !== 'adjustment') return stampTexts.added({ count });
        if (isMerge) return t.movedIn({ count });
        return (isImport ? t.imported : t.credited)({ count });
      case 'stamp.removed':
        return (isMerge ? t.movedOut : t.removed)({ count });
      case 'reward.unlocked':
        return t.unlocked({ reward: reward ?? '' });
      case 'reward.redeemed':
        return t.redeemed({ reward: reward ?? '', count });
      case 'customer_card.moved':
        return t.moved;
      case 'customer_card.merged':
        return t.merged;
      case 'customer_card.absorbed':
        return t.absorbed;
      case 'customer_card.unmerged':
      case 'customer_card.restored':
        return t.unmerged;
      default:
        return name;
    }
  }
}
