import { Dto } from '#platform/http/dtos.js';
import {
  BooleanProperty,
  IntegersProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import type { TokenDetails } from './members.service.js';
import { ROLES, type Role } from './roles.js';

@Dto('ApiToken')
export class TokenJson {
  @TextProperty({ example: 'till', description: 'The name that its user gave it.' })
  declare readonly name: string;
  @OneOfProperty(ROLES, {
    nullable: true,
    example: 'staff',
    description:
      "The token has this role wherever its user's own has more rights; null: the user's own",
  })
  declare readonly role: Role | null;
  @IntegersProperty({
    nullable: true,
    example: [1],
    description: 'The only stores that it may access; null: all that its user belongs to',
  })
  declare readonly account_ids: number[] | null;
  @BooleanProperty({
    example: false,
    description: 'true: it may only read, and whatever writes is refused with 403',
  })
  declare readonly read_only: boolean;
  @TimestampProperty({
    nullable: true,
    description: 'When it stops working; null: when it is revoked.',
  })
  declare readonly expires_at: string | null;
}

export function toTokenJson({
  name,
  role,
  accountIds,
  isReadOnly,
  expiresAt,
}: TokenDetails): TokenJson {
  return {
    name,
    role,
    account_ids: accountIds && [...accountIds],
    read_only: isReadOnly,
    expires_at: expiresAt?.toISOString() ?? null,
  };
}
