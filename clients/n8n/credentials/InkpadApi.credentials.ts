import type {
  IAuthenticateGeneric,
  Icon,
  ICredentialTestRequest,
  ICredentialType,
  INodeProperties,
} from 'n8n-workflow';

export class InkpadApi implements ICredentialType {
  name = 'inkpadApi';

  displayName = 'Inkpad API';

  icon: Icon = { light: 'file:../icons/inkpad.svg', dark: 'file:../icons/inkpad.dark.svg' };

  documentationUrl = 'https://inkpad.example/docs/guides/automation';

  properties: INodeProperties[] = [
    {
      displayName: 'Base URL',
      name: 'baseUrl',
      type: 'string',
      required: true,
      default: '',
      placeholder: 'https://cards.example.com',
      description: 'The address of your Inkpad, without /api/v1',
    },
    {
      displayName: 'Token',
      name: 'token',
      type: 'string',
      typeOptions: { password: true },
      required: true,
      default: '',
      description: 'An API token. The trigger needs the token of an owner of the store.',
    },
  ];

  authenticate: IAuthenticateGeneric = {
    type: 'generic',
    properties: { headers: { Authorization: '=Bearer {{$credentials.token}}' } },
  };

  test: ICredentialTestRequest = {
    request: {
      baseURL: '={{$credentials.baseUrl.trim().replace(/\\/+$/, "")}}',
      url: '/api/v1/token',
      method: 'GET',
    },
  };
}
