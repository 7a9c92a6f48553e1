import type { EventTable } from '#platform/kernel/aggregate.js';

/** The attributes of a poster that its shop can set. */
export type PosterAttributes = {
  title: string;
  paperSize: 'a3' | 'a4' | 'a5' | 'a6' | 'letter' | 'table_tent' | 'sticker';
  primaryColor: string;
  textColor: string;
  secondaryColor: string;
  /** Whether the signup URL is live. */
  active: boolean;
  /** Which contacts the signup form asks for. */
  contactCollectionMode: 'email_and_phone' | 'email_only' | 'phone_only';
  requireEmail: boolean;
  requirePhone: boolean;
  requireBirthday: boolean;
  /** In years; null: no limit. */
  minimumAge: number | null;
};

export type PosterCreated = {
  type: 'PosterCreated';
  data: {
    id: number;
    accountId: number;
    cardId: number;
    /** Identifies the poster in its public URLs, forever. */
    slug: string;
  } & PosterAttributes;
};
export type PosterUpdated = { type: 'PosterUpdated'; data: Partial<PosterAttributes> };
export type PosterDeleted = { type: 'PosterDeleted'; data: Record<string, never> };

export type PosterEvent = PosterCreated | PosterUpdated | PosterDeleted;

export const posterEvents = {
  PosterCreated: { name: 'poster.created', publishedAs: 'poster.created' },
  PosterUpdated: { name: 'poster.updated', publishedAs: 'poster.updated' },
  PosterDeleted: { name: 'poster.deleted', publishedAs: 'poster.deleted' },
} as const satisfies EventTable<PosterEvent>;
