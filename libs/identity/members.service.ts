import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { UnauthorizedError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { Role } from './roles.js';
import { StoreProfiles, type StoreProfile } from './store-profiles.service.js';
import { hashToken, type TokenRestrictions } from './token.js';

/** More than a store has, and little enough for a page. */
const MAX_ROWS = 500;

/** @property isConfirmed whether somebody has shown that they read the e-mails to the address */
export type Member = { id: number; name: string; email: string; role: Role; isConfirmed: boolean };

export type OpenInvitation = {
  id: number;
  email: string;
  role: Role;
  invitedBy: string;
  expiresAt: Date;
};

export type TokenDetails = TokenRestrictions & { name: string; expiresAt: Date | null };

/** @property ownerId of the token @property lastUsedAt to the minute */
export type ListedToken = TokenDetails & {
  id: number;
  ownerId: number;
  ownerName: string;
  createdAt: Date;
  lastUsedAt: Date | null;
  expired: boolean;
};

/** Selects `TokenDetails`. */
export const TOKEN_DETAILS = `t.name, t.expires_at as "expiresAt", t.role,
  t.account_ids as "accountIds", t.read_only as "isReadOnly"`;

/** The invitation that a link leads to. @property hasAccount there is an account with the address */
export type InvitationPreview = {
  accountId: number;
  store: string;
  email: string;
  role: Role;
  invitedBy: string;
  hasAccount: boolean;
};

/** Lists the members, open invitations and tokens of a store, and finds a token by itself. */
@Injectable()
export class Members {
  constructor(
    private readonly pool: Pool,
    private readonly profiles: StoreProfiles,
  ) {}

  listMembers(accountId: number): Promise<Member[]> {
    return query<Member>(this.pool, {
      name: 'members_of_store',
      text: `select u.id, u.name, u.email, m.role, u.email_confirmed_at is not null as "isConfirmed"
             from memberships m join users u on u.id = m.user_id
             where m.account_id = $1 and u.removed_at is null
             order by array_position(array['owner', 'manager', 'staff'], m.role), lower(u.name), u.id
             limit ${MAX_ROWS}`,
      values: [accountId],
    });
  }

  listOpenInvitations(accountId: number): Promise<OpenInvitation[]> {
    return query<OpenInvitation>(this.pool, {
      name: 'members_invitations',
      text: `select i.id, i.email, i.role, u.name as "invitedBy", i.expires_at as "expiresAt"
             from invitations i join users u on u.id = i.invited_by
             where i.account_id = $1 and i.accepted_at is null and i.withdrawn_at is null
               and i.expires_at > now()
             order by i.id limit ${MAX_ROWS}`,
      values: [accountId],
    });
  }

  /** Finds the addresses of invitations by id, unless they were deleted. */
  async findInvitedAddresses(accountId: number, ids: number[]): Promise<Map<number, string>> {
    const rows = await query<{ id: number; email: string }>(this.pool, {
      name: 'members_invited_addresses',
      text: 'select id, email from invitations where id = any ($2) and account_id = $1',
      values: [accountId, ids],
    });
    return new Map(rows.map(({ id, email }) => [id, email]));
  }

  /** @returns undefined when the link is not in force (any more) */
  async findInvitation(secret: string): Promise<InvitationPreview | undefined> {
    const [invitation] = await query<Omit<InvitationPreview, 'store'>>(this.pool, {
      name: 'members_invitation',
      text: `select i.account_id as "accountId", i.email, i.role,
               u.name as "invitedBy",
               exists (select from users k where k.email_key = i.email_key
                 and k.removed_at is null) as "hasAccount"
             from invitations i
             join memberships m on m.user_id = i.invited_by and m.account_id = i.account_id
             join users u on u.id = i.invited_by
             where i.sha256 = $1 and i.accepted_at is null and i.withdrawn_at is null
               and i.expires_at > now() and m.role = 'owner'`,
      values: [hashToken(secret)],
    });
    if (!invitation) return undefined;
    const [store] = await this.profiles.findProfiles([invitation.accountId]);
    return store && { ...invitation, store: store.name };
  }

  /** Tells whether the user has shown that they read the e-mails to their address. */
  async isConfirmed(userId: number): Promise<boolean> {
    const rows = await query(this.pool, {
      name: 'members_is_confirmed',
      text: 'select from users where id = $1 and email_confirmed_at is not null',
      values: [userId],
    });
    return rows.length > 0;
  }

  /**
   * Lists the tokens of a member that are valid or have expired, newest first: all of them, because they can be revoked
   * nowhere else once the member has left the stores that they are restricted to.
   * @param isForAll with those of other members that reach the store
   */
  listTokens(accountId: number, userId: number, isForAll: boolean): Promise<ListedToken[]> {
    return query<ListedToken>(this.pool, {
      name: 'members_tokens',
      text: `select t.id, ${TOKEN_DETAILS}, u.id as "ownerId", u.name as "ownerName",
               t.created_at as "createdAt", t.last_used_at as "lastUsedAt",
               coalesce(t.expires_at <= now(), false) as expired
             from memberships m join users u on u.id = m.user_id join api_tokens t on t.user_id = u.id
             where m.account_id = $1 and u.removed_at is null and t.revoked_at is null
               and (m.user_id = $2
                 or ($3 and (t.account_ids is null or m.account_id = any (t.account_ids))))
             order by t.id desc limit ${MAX_ROWS}`,
      values: [accountId, userId, isForAll],
    });
  }

  /** Finds the token of a request. @throws UnauthorizedError when it has just been deleted */
  async getToken(tokenId: number): Promise<TokenDetails> {
    const [token] = await query<TokenDetails>(this.pool, {
      name: 'members_token',
      text: `select ${TOKEN_DETAILS} from api_tokens t where t.id = $1`,
      values: [tokenId],
    });
    if (!token) throw new UnauthorizedError();
    return token;
  }

  /** Finds the stores that the user owns, the newest last. */
  async findOwnedStores(userId: number): Promise<StoreProfile[]> {
    const owned = await query<{ account_id: number }>(this.pool, {
      name: 'members_stores_owned',
      text: `select account_id from memberships where user_id = $1 and role = 'owner'`,
      values: [userId],
    });
    return this.profiles.findProfiles(owned.map((row) => row.account_id));
  }
}
