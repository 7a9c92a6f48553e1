import { IsString, MaxLength } from 'class-validator';
import {
  BooleanField,
  Field,
  IntegerField,
  TextField,
  type FieldKind,
} from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import {
  IntegerProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import type { RemovalSummary } from '#identity/identity.commands.js';
import { ROLES, type Role } from '#identity/roles.js';
import type { ListedUser } from '#identity/users.service.js';
import { ISSUES } from '#translations/issues.js';

const MAX_EMAIL = 254;
/** Limits the UTF-16 units; the rule for passwords counts characters. */
const MAX_PASSWORD = 2_000;

const DESCRIPTIONS = {
  email: 'The address that the user signs in with.',
  name: 'The name that others see.',
  confirmed:
    'Whether you vouch that the user reads the e-mails to the address. The first proof of it ends all earlier access, API tokens included.',
};

/** Keeps a password as it is: white space at its ends is a part of it. */
const passwordKind: FieldKind = {
  schema: { type: 'string', minLength: 10, maxLength: 1_000 },
  validators: [
    IsString({ context: ISSUES.not_text }),
    MaxLength(MAX_PASSWORD, { context: ISSUES.too_long({ max: 1000 }) }),
  ],
};

@Dto('AdminUserQuery')
export class UserQuery extends PageQuery {
  @IntegerField({ min: 1, optional: true, description: 'Only members of this store.' })
  declare readonly account_id: number | null;
  @TextField({
    max: MAX_EMAIL,
    optional: true,
    description: 'Only the user with this address, in any spelling.',
  })
  declare readonly email: string | null;
  @BooleanField({ default: false, description: 'Whether removed users are listed too.' })
  declare readonly include_removed: boolean;
}

@Dto('AdminNewUser', { example: { email: 'grace@shop.example', name: 'Grace Hopper' } })
export class NewUserDto {
  @TextField({ max: MAX_EMAIL, description: DESCRIPTIONS.email })
  declare readonly email: string;
  @TextField({ description: DESCRIPTIONS.name })
  declare readonly name: string;
  @Field(passwordKind, {
    optional: true,
    description: 'Left out: one is generated, and returned this once.',
  })
  declare readonly password: string | null;
  @BooleanField({ default: false, description: DESCRIPTIONS.confirmed })
  declare readonly email_confirmed: boolean;
}

@Dto('AdminUserChanges', { example: { name: 'Grace B. Hopper' } })
export class UserChangesDto {
  @TextField({ max: MAX_EMAIL, omittable: true, description: DESCRIPTIONS.email })
  declare readonly email?: string;
  @TextField({ omittable: true, description: DESCRIPTIONS.name })
  declare readonly name?: string;
  @BooleanField({ default: false, description: DESCRIPTIONS.confirmed })
  declare readonly email_confirmed: boolean;
}

@Dto('AdminNewPassword', { example: { password: null } })
export class NewPasswordDto {
  @Field(passwordKind, {
    optional: true,
    description: 'Left out: one is generated, and returned this once.',
  })
  declare readonly password: string | null;
}

@Dto('AdminUserStore')
export class UserStoreJson {
  @IntegerProperty({ description: 'The id of the store.' }) declare readonly account_id: number;
  @OneOfProperty(ROLES, { description: 'What the user may do there.' }) declare readonly role: Role;
}

@Dto('AdminUser')
export class UserJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @TextProperty({
    nullable: true,
    example: 'grace@shop.example',
    description: `${DESCRIPTIONS.email} Null some time after the user was removed.`,
  })
  declare readonly email: string | null;
  @TimestampProperty({
    nullable: true,
    description: 'When somebody showed that they read the e-mails to the address; null: not yet.',
  })
  declare readonly email_confirmed_at: string | null;
  @TextProperty({ example: 'Grace Hopper', description: DESCRIPTIONS.name })
  declare readonly name: string;
  @ObjectsProperty(() => UserStoreJson, { description: 'The stores that the user belongs to.' })
  declare readonly stores: UserStoreJson[];
  @IntegerProperty({ example: 2, description: 'How many API tokens of the user are in force.' })
  declare readonly tokens_count: number;
  @TimestampProperty({ description: 'When the user was created.' })
  declare readonly created_at: string;
  @TimestampProperty({ nullable: true, description: 'When the user was removed; null: not.' })
  declare readonly removed_at: string | null;
}

const GENERATED = {
  nullable: true,
  example: 'Zk3v0yCsampleOnly',
  description:
    'The password that was generated, which is never shown again; null: the request had one.',
} as const;

@Dto('AdminCreatedUser')
export class CreatedUserJson extends UserJson {
  @TextProperty(GENERATED) declare readonly password: string | null;
}

@Dto('AdminChangedPassword')
export class ChangedPasswordJson {
  @IntegerProperty({ description: 'The id of the user.' }) declare readonly user_id: number;
  @TextProperty(GENERATED) declare readonly password: string | null;
}

@Dto('AdminLeftStore')
export class LeftStoreJson {
  @IntegerProperty({ description: 'The id of the store.' }) declare readonly account_id: number;
  @TextProperty({ example: 'Corner Café', description: 'Its name.' })
  declare readonly name: string;
  @IntegerProperty({
    example: 0,
    description: 'How many owners it has left. Without one, nobody can manage it.',
  })
  declare readonly owners_count: number;
  @IntegerProperty({ example: 3, description: 'How many members it has left.' })
  declare readonly members_count: number;
}

@Dto('AdminRemovedUser')
export class RemovedUserJson {
  @IntegerProperty({ description: 'The id of the user.' }) declare readonly user_id: number;
  @IntegerProperty({ example: 2, description: 'How many API tokens ended.' })
  declare readonly tokens_ended: number;
  @IntegerProperty({ example: 1, description: 'How many sessions ended.' })
  declare readonly sessions_ended: number;
  @ObjectsProperty(() => LeftStoreJson, { description: 'The stores that the user belonged to.' })
  declare readonly stores: LeftStoreJson[];
}

export function toUserJson(user: ListedUser): UserJson {
  return {
    id: user.id,
    email: user.email,
    email_confirmed_at: user.emailConfirmedAt?.toISOString() ?? null,
    name: user.name,
    stores: user.stores.map(({ account_id, role }) => ({ account_id, role })),
    tokens_count: user.tokens,
    created_at: user.createdAt.toISOString(),
    removed_at: user.removedAt?.toISOString() ?? null,
  };
}

export function toCreatedUserJson(user: ListedUser, password: string | null): CreatedUserJson {
  return { ...toUserJson(user), password };
}

export function toRemovedUserJson(userId: number, summary: RemovalSummary): RemovedUserJson {
  return {
    user_id: userId,
    tokens_ended: summary.tokensEnded,
    sessions_ended: summary.sessionsEnded,
    stores: summary.stores.map(({ account_id, name, owners, members }) => ({
      account_id,
      name,
      owners_count: owners,
      members_count: members,
    })),
  };
}
