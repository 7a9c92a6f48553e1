import { ArrayMaxSize, ArrayNotEmpty, IsArray } from 'class-validator';
import {
  BooleanField,
  Check,
  Field,
  IntegerField,
  OneOfField,
  TextField,
  TimeField,
  type FieldKind,
} from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import {
  BooleanProperty,
  IntegerProperty,
  IntegersProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import type { ApiTokenRecord } from '#identity/api-tokens.service.js';
import { ROLES, type Role } from '#identity/roles.js';
import { MAX_ACCOUNTS } from '#identity/token.js';
import { ISSUES } from '#translations/issues.js';

const MAX_INT32 = 2_147_483_647;

const DESCRIPTIONS = {
  role: "The token has this role wherever its user's own has more rights; null: the user's own.",
  accounts: 'The only stores that it may access; null: all that its user belongs to.',
  readOnly: 'Whether it may only read.',
  expires: 'When it stops working; null: when it is revoked.',
  perMinute: 'Requests per minute; null: the limit of the service.',
};

const idsKind: FieldKind = {
  schema: {
    type: 'array',
    minItems: 1,
    maxItems: MAX_ACCOUNTS,
    items: { type: 'integer', minimum: 1 },
  },
  validators: [
    IsArray({ context: ISSUES.not_list_of_ids }),
    ArrayNotEmpty({ context: ISSUES.no_store }),
    ArrayMaxSize(MAX_ACCOUNTS, { context: ISSUES.store_count({ max: MAX_ACCOUNTS }) }),
    Check((ids: unknown[]) =>
      ids.every((id) => Number.isSafeInteger(id) && Number(id) >= 1)
        ? undefined
        : ISSUES.not_list_of_ids,
    ),
  ],
};

@Dto('AdminTokenQuery')
export class TokenQuery extends PageQuery {
  @IntegerField({ min: 1, optional: true, description: 'Only tokens of this user.' })
  declare readonly user_id: number | null;
  @BooleanField({
    default: false,
    description: 'Whether tokens that were revoked or have expired are listed too.',
  })
  declare readonly include_ended: boolean;
}

@Dto('AdminNewToken', {
  example: { user_id: 1, name: 'till', role: 'staff', account_ids: [1] },
})
export class NewTokenDto {
  @IntegerField({ min: 1, description: 'The id of the user that it acts for.' })
  declare readonly user_id: number;
  @TextField({ example: 'till', description: 'What it is for.' }) declare readonly name: string;
  @OneOfField(ROLES, { optional: true, description: DESCRIPTIONS.role })
  declare readonly role: Role | null;
  @Field(idsKind, { optional: true, description: DESCRIPTIONS.accounts })
  declare readonly account_ids: number[] | null;
  @BooleanField({ default: false, description: DESCRIPTIONS.readOnly })
  declare readonly read_only: boolean;
  @TimeField({ moment: 'end', zone: 'UTC', optional: true, description: 'When it stops working' })
  declare readonly expires_at: Date | null;
}

@Dto('AdminTokenChanges')
export class TokenChangesDto {
  @IntegerField({ min: 1, max: MAX_INT32, example: 1200, description: 'Requests per minute.' })
  declare readonly per_minute: number;
}

@Dto('AdminToken')
export class TokenJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The id of the user that it acts for.' })
  declare readonly user_id: number;
  @TextProperty({ example: 'till', description: 'What it is for.' }) declare readonly name: string;
  @OneOfProperty(ROLES, { nullable: true, example: 'staff', description: DESCRIPTIONS.role })
  declare readonly role: Role | null;
  @IntegersProperty({ nullable: true, example: [1], description: DESCRIPTIONS.accounts })
  declare readonly account_ids: number[] | null;
  @BooleanProperty({ example: false, description: DESCRIPTIONS.readOnly })
  declare readonly read_only: boolean;
  @IntegerProperty({ nullable: true, example: null, description: DESCRIPTIONS.perMinute })
  declare readonly per_minute: number | null;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ nullable: true, description: DESCRIPTIONS.expires })
  declare readonly expires_at: string | null;
  @TimestampProperty({ nullable: true, description: 'When it was last used, to the minute.' })
  declare readonly last_used_at: string | null;
  @TimestampProperty({ nullable: true, description: 'When it was revoked; null: not.' })
  declare readonly revoked_at: string | null;
  @BooleanProperty({
    example: false,
    description:
      'Whether it ends once its user shows that the address is theirs, at the first sign-in with a company or by a link for a new password: the address is not confirmed yet.',
  })
  declare readonly ends_when_confirmed: boolean;
}

@Dto('AdminCreatedToken')
export class CreatedTokenJson extends TokenJson {
  @TextProperty({
    example: 'ink_Zk3v0yCsample-of-a-token-that-is-shown-once',
    description: 'The token itself, which is never shown again.',
  })
  declare readonly token: string;
}

export function toApiTokenJson(token: ApiTokenRecord): TokenJson {
  return {
    id: token.id,
    user_id: token.userId,
    name: token.name,
    role: token.role,
    account_ids: token.accountIds && [...token.accountIds],
    read_only: token.isReadOnly,
    per_minute: token.perMinute,
    created_at: token.createdAt.toISOString(),
    expires_at: token.expiresAt?.toISOString() ?? null,
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
    revoked_at: token.revokedAt?.toISOString() ?? null,
    ends_when_confirmed: token.endsWhenConfirmed,
  };
}

/** @param secret the token itself */
export function toCreatedTokenJson(token: ApiTokenRecord, secret: string): CreatedTokenJson {
  return { ...toApiTokenJson(token), token: secret };
}
