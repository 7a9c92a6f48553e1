import { BooleanField, Field, IntegerField, TextField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import { BooleanProperty } from '#platform/http/response-fields.js';
import type { NewAccount } from '#loyalty/accounts/account.js';
import { AccountJson, STORE_KINDS, UpdateAccountDto } from '#loyalty/accounts/account.dto.js';

@Dto('AdminStoreQuery')
export class StoreQuery extends PageQuery {
  @IntegerField({ min: 1, optional: true, description: 'Only stores of this user.' })
  declare readonly user_id: number | null;
}

@Dto('AdminNewStore', {
  example: { name: 'Corner Café', owner_id: 1, time_zone: 'Europe/Berlin', country: 'DE' },
})
export class NewStoreDto {
  @TextField({ example: 'Corner Café', description: 'The name.' }) declare readonly name: string;

  @TextField({ optional: true, description: 'The public name; null means the name' })
  declare readonly store_name: string | null;

  @IntegerField({ min: 1, description: 'The id of the user who owns it from the beginning.' })
  declare readonly owner_id: number;

  @BooleanField({ default: false, description: "Whether it is the owner's own store." })
  declare readonly personal: boolean;

  @Field(STORE_KINDS.timeZone, {
    default: 'UTC',
    example: 'Europe/Berlin',
    description: 'IANA name; days and birthdays are counted in this time zone.',
  })
  declare readonly time_zone: string;

  @Field(STORE_KINDS.locale, {
    default: 'en',
    example: 'en',
    description: 'BCP 47 language tag, of what customers read.',
  })
  declare readonly locale: string;

  @Field(STORE_KINDS.country, {
    clearable: true,
    example: 'DE',
    description:
      'ISO 3166-1 alpha-2, in which phone numbers are read; that of the locale if it is left out, none if it is null',
  })
  declare readonly country?: string | null;
}

@Dto('AdminStoreChanges', { example: { store_name: 'Corner Café', time_zone: 'Europe/Berlin' } })
export class StoreChangesDto extends UpdateAccountDto {}

@Dto('AdminStore')
export class StoreJson extends AccountJson {
  @BooleanProperty({ example: false, description: "Whether it is a user's own store" })
  declare readonly personal: boolean;
}

export function toNewAccount(input: NewStoreDto): NewAccount {
  const { name, store_name, personal, time_zone, locale, country } = input;
  return {
    name,
    storeName: store_name,
    personal,
    timeZone: time_zone,
    locale,
    ...(country !== undefined && { country }),
  };
}
