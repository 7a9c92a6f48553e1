import { IntegerField, OneOfField, TextField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import {
  BooleanProperty,
  IntegerProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import type { CreatedInvitation } from '#identity/invitation.commands.js';
import { INVITATION_DAYS } from '#identity/links.js';
import type { Member, OpenInvitation } from '#identity/members.service.js';
import { ROLES, type Role } from '#identity/roles.js';

const ROLE = { example: 'manager', description: 'What the user may do in the store.' };

@Dto('AdminNewMember')
export class NewMemberDto {
  @IntegerField({ min: 1, description: 'The id of the user.' }) declare readonly user_id: number;
  @OneOfField(ROLES, ROLE) declare readonly role: Role;
}

@Dto('AdminMemberChanges')
export class MemberChangesDto {
  @OneOfField(ROLES, ROLE) declare readonly role: Role;
}

@Dto('AdminNewInvitation')
export class NewInvitationDto {
  @TextField({ max: 254, example: 'grace@shop.example', description: 'Whom it is for.' })
  declare readonly email: string;
  @OneOfField(ROLES, ROLE) declare readonly role: Role;
}

@Dto('AdminMember')
export class MemberJson {
  @IntegerProperty({ description: 'The id of the user.' }) declare readonly user_id: number;
  @OneOfProperty(ROLES, ROLE) declare readonly role: Role;
}

@Dto('AdminListedMember')
export class ListedMemberJson extends MemberJson {
  @TextProperty({ example: 'Grace Hopper', description: 'The name that others see.' })
  declare readonly name: string;
  @TextProperty({ example: 'grace@shop.example', description: 'The address.' })
  declare readonly email: string;
  @BooleanProperty({
    description: 'Whether somebody has shown that they read the e-mails to the address.',
  })
  declare readonly email_confirmed: boolean;
}

@Dto('AdminInvitation')
export class InvitationJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @TextProperty({ example: 'grace@shop.example', description: 'Whom it is for.' })
  declare readonly email: string;
  @OneOfProperty(ROLES, ROLE) declare readonly role: Role;
}

@Dto('AdminListedInvitation')
export class ListedInvitationJson extends InvitationJson {
  @TimestampProperty({ description: 'When its link stops working.' })
  declare readonly expires_at: string;
}

@Dto('AdminCreatedInvitation')
export class CreatedInvitationJson extends InvitationJson {
  @TextProperty({
    format: 'uri',
    example: 'https://inkpad.example/app/invitations/Zk3v0yCsample-of-a-secret-that-is-shown-onc',
    description: 'The link that accepts it. It is never shown again: pass it on to the person.',
  })
  declare readonly url: string;
  @IntegerProperty({ example: 7, description: 'For how many days the link works.' })
  declare readonly expires_in_days: number;
}

export function toMemberJson(user_id: number, role: Role): MemberJson {
  return { user_id, role };
}

export function toListedMemberJson({
  id,
  role,
  name,
  email,
  isConfirmed,
}: Member): ListedMemberJson {
  return { user_id: id, role, name, email, email_confirmed: isConfirmed };
}

export function toListedInvitationJson({
  id,
  email,
  role,
  expiresAt,
}: OpenInvitation): ListedInvitationJson {
  return { id, email, role, expires_at: expiresAt.toISOString() };
}

/** @param url of the link with the secret */
export function toCreatedInvitationJson(
  { invitationId, email }: Pick<CreatedInvitation, 'invitationId' | 'email'>,
  role: Role,
  url: string,
): CreatedInvitationJson {
  return { id: invitationId, email, role, url, expires_in_days: INVITATION_DAYS };
}
