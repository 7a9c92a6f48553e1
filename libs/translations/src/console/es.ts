import type { Translations } from '../en.js';

export const console: Translations['console'] = {
  skip: 'Ir al contenido',
  you: 'Su cuenta',
  signOut: 'Cerrar sesión',
  menu: 'Menú',
  overview: 'Resumen',
  stores: 'Sus negocios',
  navigation: {
    cards: { title: 'Tarjetas', about: 'Diseño, premios, límites' },
    customers: { title: 'Clientes', about: 'Buscar, corregir sellos' },
    locations: { title: 'Locales', about: 'Sus tiendas en el mapa' },
    posters: { title: 'Carteles', about: 'Para imprimir y colgar' },
    messages: { title: 'Mensajes', about: 'Enlaces enviados a clientes' },
    numbers: { title: 'Cifras', about: 'Cómo va su negocio' },
    transfers: { title: 'Importar y exportar', about: 'Archivos de entrada y salida' },
    users: { title: 'Equipo', about: 'Quién puede entrar aquí' },
    tokens: { title: 'Tokens de API', about: 'Para cajas y tiendas en línea' },
    webhooks: { title: 'Webhooks', about: 'Eventos enviados a otros sistemas' },
    brand: { title: 'Marca', about: 'Logotipo, colores, contacto' },
    settings: { title: 'Ajustes', about: 'Nombre, idioma, registro' },
    history: { title: 'Historial', about: 'Todo lo que ha pasado' },
    audit: { title: 'Registro', about: 'Cambios en el equipo y los tokens' },
  },
};
